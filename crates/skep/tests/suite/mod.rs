//! The public conformance suite, and what it is expected to find.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::npm::Packages;

/// What the suite's own reference server passes (checks that succeed, by requirement set).
pub(crate) const REFERENCE: [(&str, usize); 2] = [("2025-11-25", 84), ("2026-07-28", 130)];

/// What it finds in a bridge to a process that all clients share.
pub(crate) const SHARED_PROCESS: &str = include_str!("shared_process_expected_failures.txt");
/// What it finds in a bridge to a process of each session.
pub(crate) const OWN_PROCESS: &str = include_str!("own_process_expected_failures.txt");

/// Scenarios of extensions that the demo server does not have. They are not scored.
const EXTENSIONS: [&str; 2] = ["tasks-", "sep-2640-"];

/// The suite gives a server half a second for some answers, which a busy machine may take for itself.
const ATTEMPTS: usize = 3;

/// Runs one requirement set against an address, and gives the number of checks that succeeded and those that failed
/// outside extensions. As long as scenarios fail that are not expected to, it is tried again.
pub(crate) fn run(
    packages: &Packages,
    requirements: &str,
    address: &str,
    expected: &BTreeSet<&str>,
) -> (usize, Vec<String>) {
    let mut result = run_once(packages, requirements, address);
    for _ in 1..ATTEMPTS {
        if result.1.iter().all(|failed| expected.contains(scenario(failed))) {
            break;
        }
        println!("{requirements}: trying again after {:#?}", result.1);
        result = run_once(packages, requirements, address);
    }
    result
}

/// The name of a scenario, from a result whose folder has it between a word and the time.
pub(crate) fn scenario(failed: &str) -> &str {
    let folder = failed.split(' ').next().unwrap();
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    name.get(..name.len().saturating_sub("-2026-01-01T00-00-00-000Z".len())).unwrap_or(name)
}

/// Runs all requirement sets against an address. What fails is in the lists of expected failures, and the other way round;
/// where none are expected, as much passes as at the reference server.
pub(crate) fn check(packages: &Packages, what: &str, address: &str, lists: &[&'static str]) {
    for (requirements, reference) in REFERENCE {
        let expected = lists.iter().flat_map(|list| expected_failures(list, requirements)).collect();
        let (passed, failed) = run(packages, requirements, address, &expected);
        println!("figure: {requirements} through {what}: {passed} passed, {} failed", failed.len());
        let found: BTreeSet<&str> = failed.iter().map(|failed| scenario(failed)).collect();
        assert_eq!(found, expected, "{requirements} through {what}: {failed:#?}");
        assert!(!expected.is_empty() || passed >= reference, "{requirements} through {what}: {passed} passed");
    }
}

fn run_once(packages: &Packages, requirements: &str, address: &str) -> (usize, Vec<String>) {
    let results = tempfile::tempdir().unwrap();
    let output = packages
        .node()
        .arg(packages.file("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", &format!("http://{address}/mcp"), "--requirements", requirements, "-o"])
        .arg(results.path())
        .output()
        .unwrap();
    let (passed, mut failed) = count(results.path());
    assert!(passed > 0, "{requirements}: {}", String::from_utf8_lossy(&output.stdout));
    failed.retain(|name| !EXTENSIONS.iter().any(|extension| name.starts_with(&format!("server-{extension}"))));
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

/// The scenarios that cannot be passed, each with its reason.
pub(crate) fn expected_failures(list: &'static str, requirements: &str) -> BTreeSet<&'static str> {
    let lines = list.lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.filter_map(|line| line.split_once(": ")?.0.strip_prefix(requirements)).map(str::trim).collect()
}
