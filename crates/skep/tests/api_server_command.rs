//! `skep api-server` as a person meets it: what it prints, what ends it, and what it says when it cannot start.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
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
