//! Builds etcd, the Kubernetes control plane and kubectl from Go modules, once, into the cache.
//!
//! `tools/control-plane/go.mod` pins the release. The cache is keyed by it, so a new release is a new build and an old
//! one is never taken for it.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context as _, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::workspace;

/// Names a folder of ready binaries, as the tools of other projects do.
pub(crate) const BINARIES_VARIABLE: &str = "KUBEBUILDER_ASSETS";

const UNFINISHED_PREFIX: &str = "building-";

/// The file that each program becomes, and the package it is built from.
const PROGRAMS: [(&str, &str); 5] = [
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
];

/// The folder of the binaries, built now if they are not there yet.
pub(crate) fn ensure() -> anyhow::Result<PathBuf> {
    if let Some(folder) = ready_made() {
        // Tests run in the folders of their crates.
        let folder = std::path::absolute(folder)?;
        if let Some(program) = missing(&folder) {
            bail!(
                "{BINARIES_VARIABLE} is {}, which has no executable {program}; unset it to build the control plane here",
                folder.display()
            );
        }
        return Ok(folder);
    }
    let module = module();
    let finished = place(&module)?;
    if is_complete(&finished) {
        return Ok(finished);
    }
    check_go()?;
    let cache = finished.parent().unwrap_or(&finished).to_path_buf();
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    if finished.exists() {
        fs::remove_dir_all(&finished)
            .with_context(|| format!("cannot remove the incomplete {}", finished.display()))?;
    }
    remove_abandoned(&cache);
    // Built beside its final place and renamed, so that a build that was cut off is never taken for a finished one.
    let unfinished = tempfile::Builder::new().prefix(UNFINISHED_PREFIX).tempdir_in(&cache)?;
    let release = kubernetes_release(&module)?;
    eprintln!("building Kubernetes {release} for the tests (once; about five minutes on two cores)");
    for (index, (program, package)) in PROGRAMS.iter().enumerate() {
        eprint!("  [{}/{}] {program} … ", index + 1, PROGRAMS.len());
        let started = Instant::now();
        build(&module, package, &unfinished.path().join(program), &release)?;
        eprintln!("{} s", started.elapsed().as_secs());
    }
    publish(&unfinished.keep(), &finished)?;
    Ok(finished)
}

/// The folder that the user names. An empty name, which a failed command substitution leaves, is none.
fn ready_made() -> Option<PathBuf> {
    env::var_os(BINARIES_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

fn module() -> PathBuf {
    workspace::root().join("tools/control-plane")
}

/// Where the binaries of the pinned release are kept.
fn place(module: &Path) -> anyhow::Result<PathBuf> {
    Ok(workspace::cache()?.join("control-plane").join(key(module)?))
}

/// The first program that a folder lacks, or cannot run.
fn missing(folder: &Path) -> Option<&'static str> {
    let is_program = |program: &str| {
        let found = fs::metadata(folder.join(program));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    PROGRAMS.iter().map(|(program, _)| *program).find(|program| !is_program(program))
}

fn is_complete(folder: &Path) -> bool {
    missing(folder).is_none()
}

/// Whether binaries can be had here at all; if not, why not.
pub(crate) fn unavailable() -> Option<String> {
    let is_there = ready_made().is_some() || place(&module()).is_ok_and(|folder| is_complete(&folder));
    if is_there {
        return None;
    }
    check_go().err().map(|error| error.to_string())
}

fn check_go() -> anyhow::Result<()> {
    let hint = format!("install Go 1.26, or set {BINARIES_VARIABLE} to a folder of ready binaries");
    match Command::new("go").arg("version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) => bail!("`go version` fails; {hint}"),
        Err(error) => bail!("Go is not installed ({error}); {hint}"),
    }
}

/// Everything that decides what the binaries are: sources, flags and platform.
fn key(module: &Path) -> anyhow::Result<String> {
    let flags = linker_flags(&kubernetes_release(module)?)?;
    let mut pinned = format!("{flags}\n{PROGRAMS:?}\n{}-{}\n", env::consts::OS, env::consts::ARCH).into_bytes();
    for file in ["go.mod", "go.sum"] {
        let path = module.join(file);
        pinned.extend(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    let mut key = hex::encode(Sha256::digest(&pinned));
    key.truncate(16);
    Ok(key)
}

fn kubernetes_release(module: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(module.join("go.mod"))?;
    text.lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes ")?.split_whitespace().next())
        .map(str::to_owned)
        .context("tools/control-plane/go.mod does not require k8s.io/kubernetes")
}

fn build(module: &Path, package: &str, output: &Path, release: &str) -> anyhow::Result<()> {
    let result = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", &linker_flags(release)?, "-o"])
        .arg(output)
        .arg(package)
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .output()
        .context("cannot run go")?;
    ensure!(result.status.success(), "go build {package} failed:\n{}", String::from_utf8_lossy(&result.stderr));
    Ok(())
}

/// What builds that were killed have left. A build that still runs has written something within the last hour.
fn remove_abandoned(cache: &Path) {
    let an_hour = std::time::Duration::from_hours(1);
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let is_unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX);
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
        if is_unfinished && age.is_some_and(|age| age > an_hour) {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Without these the server calls itself v0.0.0 and clients take it for an ancient one.
fn linker_flags(release: &str) -> anyhow::Result<String> {
    let numbers: Vec<&str> = release.trim_start_matches('v').split('.').collect();
    let [major, minor, _] = numbers.as_slice() else {
        bail!("{release} is not a Kubernetes release");
    };
    let mut flags = "-s -w".to_owned();
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (name, value) in [("gitVersion", release), ("gitMajor", major), ("gitMinor", minor)] {
            // Writing to a String cannot fail.
            let _ = write!(flags, " -X {package}.{name}={value}");
        }
    }
    Ok(flags)
}

/// Another run may have finished the same build in the meantime; its result is as good as ours.
fn publish(unfinished: &Path, finished: &Path) -> anyhow::Result<()> {
    match fs::rename(unfinished, finished) {
        Err(_) if is_complete(finished) => Ok(fs::remove_dir_all(unfinished)?),
        result => result.with_context(|| format!("cannot move the binaries to {}", finished.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_the_module_and_set_by_linker_flags() {
        let release = kubernetes_release(&workspace::root().join("tools/control-plane")).unwrap();
        assert!(release.starts_with("v1.36."), "{release}");
        assert!(linker_flags(&release).unwrap().contains("-X k8s.io/client-go/pkg/version.gitMinor=36"));
        assert!(linker_flags("latest").is_err());
    }
}
