//! `skep api-server` as a person meets it: what it prints, what ends it, and what it says when it cannot start.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use snapbox::cmd::cargo_bin;

const PATIENCE: Duration = Duration::from_mins(1);

/// Ends with the test, whatever becomes of it.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// The server in a folder, and the line that it begins with.
    fn start(folder: &Path, arguments: &[&str]) -> (Self, String) {
        let mut command = Command::new(cargo_bin!("skep"));
        command.arg("api-server").args(arguments).current_dir(folder).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), line)
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn end(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "the server goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn the_first_line_can_be_pasted_into_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, line) = Server::start(folder.path(), &["--data-dir", "my data", "--listen", "localhost:0"]);
    assert!(line.starts_with("serving https://127.0.0.1:"), "{line}");
    let (_, export) = line.trim_end().split_once("; ").unwrap();
    let script = format!("cd / && {export} && cat \"$KUBECONFIG\"");
    let shown = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains("current-context: skep"), "{line}");
}

#[test]
fn signals_end_it_in_order() {
    for name in ["-HUP", "-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut server, _) = Server::start(folder.path(), &["--data-dir", "data", "--listen", "127.0.0.1:0"]);
        server.signal(name);
        assert!(server.end().success(), "{name}");
    }
}

#[test]
fn an_address_that_is_none_is_told() {
    for address in ["localhost", "127.0.0.1:99999"] {
        let output = Command::new(cargo_bin!("skep"))
            .args(["api-server", "--data-dir", "data", "--listen", address])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("--listen") && told.contains("address"), "{told}");
    }
}

/// A disk of some pages, in namespaces of its own, that is filled between two starts.
#[test]
fn a_full_disk_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let skep = cargo_bin!("skep");
    let start = format!("'{}' api-server --data-dir disk/data --listen 127.0.0.1:0", skep.display());
    let text = format!(
        "mount -t tmpfs -o size=4m tmpfs disk || exit 77
         {start} & server=$!
         until [ -e disk/data/kubeconfig ]; do kill -0 $server || exit 78; sleep 0.1; done
         kill $server; wait $server
         cat /dev/zero > disk/filler 2>/dev/null
         exec {start}"
    );
    fs::write(&script, text).unwrap();
    fs::create_dir(folder.path().join("disk")).unwrap();
    let output = Command::new("timeout")
        .args(["120", "unshare", "--user", "--map-root-user", "--mount", "sh"])
        .arg(&script)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    if output.status.code() == Some(77) || told.starts_with("unshare: ") {
        skep_conformance::skip::skip("a_full_disk_is_told", "no namespaces here");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{told}");
    let report = &told[told.find("error: ").unwrap()..];
    assert!(report.contains("No space left on device") && report.contains("disk/data"), "{report}");
    assert!(report.contains("hint: "), "{report}");
    assert_eq!(report.matches("No space left on device").count(), 1, "{report}");
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn data_of_a_newer_version_and_damaged_data_are_told_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir", "data", "--listen", "127.0.0.1:0"];
    let (mut server, _) = Server::start(folder.path(), &arguments);
    server.signal("-TERM");
    assert!(server.end().success());

    let store = folder.path().join("data/store");
    let data = store.join("store.redb");
    let whole = fs::read(&data).unwrap();
    let half = &whole[..whole.len() / 2];
    let newer: &[u8] = b"skep-kube store 99\n";
    for (file, bytes, what) in [(store.join("format"), newer, "newer version"), (data, half, "damaged")] {
        let before = fs::read(&file).unwrap();
        fs::write(&file, bytes).unwrap();
        let all = contents(&store);
        let output = Command::new("timeout")
            .args(["60", cargo_bin!("skep").to_str().unwrap(), "api-server"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(what) && told.contains("data/store") && told.contains("hint: "), "{told}");
        assert!(contents(&store) == all, "the folder was changed: {told}");
        fs::write(&file, before).unwrap();
    }
    let (_server, line) = Server::start(folder.path(), &arguments);
    assert!(line.starts_with("serving "), "what is put right is served: {line}");
}

/// Off loopback, in a network of its own, the server is who it was said to be and nobody else.
#[test]
fn another_address_is_served_under_the_names_that_were_given() {
    const TEST: &str = "another_address_is_served_under_the_names_that_were_given";
    let Some(binaries) = skep_conformance::control_plane::binaries_or_skip(TEST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let text = format!(
        "ip link set lo up && ip address add 192.0.2.7/32 dev lo || exit 77
         '{skep}' api-server --data-dir data --listen 0.0.0.0:6443 --tls-san hive.example.com --tls-san 192.0.2.7 &
         server=$!
         until [ -e data/kubeconfig ]; do kill -0 $server || exit 78; sleep 0.1; done
         ready() {{ '{kubectl}' --kubeconfig data/kubeconfig \"$@\" get --raw /readyz 2>&1; echo; }}
         echo \"own: $(ready)\"
         echo \"address: $(ready --server https://192.0.2.7:6443)\"
         echo \"name: $(ready --server https://192.0.2.7:6443 --tls-server-name hive.example.com)\"
         echo \"other: $(ready --server https://192.0.2.7:6443 --tls-server-name wasp.example.com)\"
         kill $server; wait $server",
        skep = cargo_bin!("skep").display(),
        kubectl = binaries.join("kubectl").display(),
    );
    fs::write(&script, text).unwrap();
    let output = Command::new("timeout")
        .args(["120", "unshare", "--user", "--map-root-user", "--net", "sh"])
        .arg(&script)
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    if output.status.code() == Some(77) || complaint.starts_with("unshare: ") {
        skep_conformance::skip::skip(TEST, "no namespaces here");
        return;
    }
    let told = String::from_utf8(output.stdout).unwrap();
    for line in ["own: ok", "address: ok", "name: ok"] {
        assert!(told.lines().any(|known| known == line), "not {line}:\n{told}{complaint}");
    }
    assert!(told.contains("not wasp.example.com"), "{told}{complaint}");
}
