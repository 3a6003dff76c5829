//! The public conformance suite.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::npm::Packages;
use crate::process::Server;

/// What the suite's own reference server passes (checks that succeed, by requirement set).
const REFERENCE: [(&str, usize); 2] = [("2025-11-25", 84), ("2026-07-28", 130)];

/// Scenarios of extensions that the demo server does not have. They are not scored.
const EXTENSIONS: [&str; 2] = ["tasks-", "sep-2640-"];

/// Runs one requirement set, and gives the number of checks that succeeded and those that failed.
fn run(packages: &Packages, requirements: &str) -> (usize, Vec<String>) {
    let server = Server::start("streamable-http");
    let results = tempfile::tempdir().unwrap();
    let output = packages
        .node()
        .arg(packages.file("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", &format!("http://{}/mcp", server.address), "--requirements", requirements, "-o"])
        .arg(results.path())
        .output()
        .unwrap();
    let (passed, failed) = count(results.path());
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{requirements}: {failed:#?}\n{told}");
    (passed, failed)
}

fn count(results: &Path) -> (usize, Vec<String>) {
    let mut passed = 0;
    let mut failed = BTreeMap::new();
    for scenario in std::fs::read_dir(results).unwrap() {
        let scenario = scenario.unwrap();
        let checks: Value =
            serde_json::from_slice(&std::fs::read(scenario.path().join("checks.json")).unwrap()).unwrap();
        for check in checks.as_array().unwrap() {
            match check["status"].as_str().unwrap() {
                "SUCCESS" => passed += 1,
                "FAILURE" | "WARNING" => {
                    let name = format!("{} {}", scenario.file_name().display(), check["id"].as_str().unwrap());
                    failed.insert(name, check["errorMessage"].to_string());
                }
                _ => {}
            }
        }
    }
    (passed, failed.into_iter().map(|(name, reason)| format!("{name}: {reason}")).collect())
}

#[test]
fn the_public_suite_finds_nothing_that_its_reference_server_does_better() {
    let Some(packages) = Packages::get("the_public_suite_finds_nothing_that_its_reference_server_does_better") else {
        return;
    };
    for (requirements, reference) in REFERENCE {
        let (passed, mut failed) = run(&packages, requirements);
        let all = failed.len();
        failed.retain(|name| !EXTENSIONS.iter().any(|extension| name.starts_with(&format!("server-{extension}"))));
        println!("{requirements}: {passed} passed, {all} failed, {} of them outside extensions", failed.len());
        assert_eq!(failed, Vec::<String>::new(), "{requirements}");
        assert!(passed >= reference, "{requirements}: {passed} passed, and {reference} of the reference server");
    }
}
