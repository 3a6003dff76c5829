//! Builds etcd, the Kubernetes control plane and kubectl from Go modules, once, into the cache.
//!
//! `tools/control-plane/go.mod` pins the release. The cache is keyed by it, so a new release is a new build and an old
//! one is never taken for it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context as _, bail, ensure};
use skep_api::hash::sha256_hex;

use crate::workspace;

/// Names a folder of ready binaries, as the tools of other projects do.
pub(crate) const BINARIES_VARIABLE: &str = "KUBEBUILDER_ASSETS";

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
    if let Some(folder) = env::var_os(BINARIES_VARIABLE) {
        let folder = PathBuf::from(folder);
        if let Some(program) = missing(&folder) {
            bail!(
                "{BINARIES_VARIABLE} is {}, which has no {program}; unset it to build the control plane here",
                folder.display()
            );
        }
        return Ok(folder);
    }
    let module = workspace::root().join("tools/control-plane");
    let cache = workspace::cache()?.join("control-plane");
    let finished = cache.join(key(&module)?);
    if is_complete(&finished) {
        return Ok(finished);
    }
    check_go()?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    if finished.exists() {
        fs::remove_dir_all(&finished)
            .with_context(|| format!("cannot remove the incomplete {}", finished.display()))?;
    }
    // Built beside its final place and renamed, so that a build that was cut off is never taken for a finished one.
    let unfinished = tempfile::Builder::new().prefix("building-").tempdir_in(&cache)?;
    let release = kubernetes_release(&module)?;
    eprintln!("building Kubernetes {release} for the tests (once; five to ten minutes on two cores)");
    for (index, (program, package)) in PROGRAMS.iter().enumerate() {
        eprint!("  [{}/{}] {program} … ", index + 1, PROGRAMS.len());
        let started = Instant::now();
        build(&module, package, &unfinished.path().join(program), &release)?;
        eprintln!("{} s", started.elapsed().as_secs());
    }
    publish(&unfinished.keep(), &finished)?;
    Ok(finished)
}

/// The first program that a folder lacks.
fn missing(folder: &Path) -> Option<&'static str> {
    PROGRAMS.iter().map(|(program, _)| *program).find(|program| !folder.join(program).is_file())
}

fn is_complete(folder: &Path) -> bool {
    missing(folder).is_none()
}

/// Whether binaries can be had here at all; if not, why not.
pub(crate) fn unavailable() -> Option<String> {
    if env::var_os(BINARIES_VARIABLE).is_some() {
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
    let mut key = sha256_hex(&pinned);
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
