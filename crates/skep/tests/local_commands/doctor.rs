//! What `skep doctor` finds.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::here::{Here, Said};

fn finding(said: &Said, check: &str) -> Value {
    let findings: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
    findings.into_iter().find(|finding| finding["check"] == check).unwrap()
}

#[test]
fn what_is_missing_is_told_with_a_remedy() {
    let here = Here::new();
    let tools = here.folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    program(&tools, "uv", "echo uv 0.9.1");
    let mut command = here.command(&["doctor", "-o", "json", "--listen", "127.0.0.1:0"]);
    let said = Said::new(command.env("PATH", &tools).output());
    assert_eq!(said.code, Some(0), "skep up works without: {said:?}");
    assert_eq!(finding(&said, "uv")["state"], "good");
    let found = finding(&said, "uv")["found"].as_str().unwrap().to_owned();
    assert!(found.ends_with("/uv (uv 0.9.1)"), "{found}");
    for check in ["node", "pasta", "kubectl", "go"] {
        let finding = finding(&said, check);
        assert_eq!((finding["state"].as_str(), finding["found"].as_str()), (Some("missing"), Some("not installed")));
        assert!(
            !finding["remedy"][0].as_str().unwrap().is_empty() && !finding["neededFor"].as_str().unwrap().is_empty()
        );
    }
    assert_eq!(finding(&said, "data folder")["state"], "good");
    assert!(!here.data().exists(), "looking has made the folder");
}

/// A program that does what a script says.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn programs_that_do_not_work_are_as_good_as_missing() {
    let here = Here::new();
    let tools = here.folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    // Files that are no programs, as an installation that was cut short leaves them.
    fs::write(tools.join("node"), "").unwrap();
    fs::write(tools.join("npm"), "").unwrap();
    program(&tools, "python3", "echo \"ModuleNotFoundError: No module named 'ensurepip'\" >&2; exit 1");
    let mut command = here.command(&["doctor", "-o", "json", "--listen", "127.0.0.1:0"]);
    let said = Said::new(command.env("PATH", &tools).output());
    let node = finding(&said, "node");
    assert_eq!((node["state"].as_str(), node["found"].as_str()), (Some("missing"), Some("not installed")));
    let uv = finding(&said, "uv");
    assert_eq!(uv["state"], "missing");
    assert!(uv["found"].as_str().unwrap().ends_with("No module named 'ensurepip'"), "{uv}");
    assert!(uv["remedy"][0].as_str().unwrap().contains("python3-venv"), "{uv}");
}

#[test]
fn what_makes_a_start_impossible_is_a_failure() {
    let here = Here::new();
    fs::write(here.data(), "a file").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let said = here.run(&["doctor", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.starts_with("error: skep up cannot work here: data folder, port\n"), "{said:?}");
    assert!(said.stdout.contains("is not a folder") && said.stdout.contains("--listen 127.0.0.1:0"), "{said:?}");
}

#[test]
fn what_runs_is_in_nobodys_way() {
    let here = Here::new();
    let log = here.up(&["--no-demo"]);
    let address = fs::read_to_string(here.data().join("serving")).unwrap();
    let address = address.trim().strip_prefix("https://").unwrap();
    let said = here.run(&["doctor", "-o", "json", "--listen", address]);
    assert_eq!(said.code, Some(0), "{said:?}\n{log}");
    assert!(finding(&said, "data folder")["found"].as_str().unwrap().contains("skep up runs on it, process "));
    assert!(finding(&said, "port")["found"].as_str().unwrap().contains("is that of skep up"), "{said:?}");
}
