//! The public conformance suite: what it finds through a proxy is what it finds without one, check by check.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::npm::Packages;

/// What the suite finds in the demo server itself, by requirement set: scenario, check and result of every check.
pub(crate) const DIRECT: [(&str, &str); 2] =
    [("2025-11-25", include_str!("direct_2025-11-25.txt")), ("2026-07-28", include_str!("direct_2026-07-28.txt"))];

/// What is different in a bridge to a process that all clients share.
pub(crate) const SHARED_PROCESS: &str = include_str!("shared_process_expected_failures.txt");
/// What is different in a bridge to a process of each session.
pub(crate) const OWN_PROCESS: &str = include_str!("own_process_expected_failures.txt");

/// How often the suite is run at most. Only what it gives little time for may be different once.
const ATTEMPTS: usize = 3;
/// What the beginnings of those scenarios are called: they wait for so long, which a busy machine may take for itself.
const HURRIED: [&str; 5] = [
    // A second.
    "server-stateless ",
    // 200 ms.
    "tools-call-with-logging ",
    // Measures when a client comes back.
    "server-sse-polling ",
    // Two seconds for each of several streams.
    "server-sse-multiple-streams ",
    // Half a second.
    "tasks-",
];
/// The result of a check that is made without a proxy, and not through this one.
const NOT_MADE: &str = "NOT-MADE";

/// Runs all requirement sets against an address. The results are those of the demo server itself, but for the differences
/// that are expected, all of which are there.
pub(crate) fn check(packages: &Packages, what: &str, address: &str, differences: &[&str]) {
    for (requirements, _) in DIRECT {
        check_set(packages, requirements, what, address, differences);
    }
}

/// Runs one requirement set.
pub(crate) fn check_set(packages: &Packages, requirements: &str, what: &str, address: &str, differences: &[&str]) {
    let expected = expected(requirements, differences);
    let mut found = run(packages, requirements, address);
    for _ in 1..ATTEMPTS {
        let differences = compared(&found, &expected);
        if differences.is_empty() || !differences.iter().all(Unexpected::is_hurried) {
            break;
        }
        println!("{requirements} through {what}: trying again after {differences:#?}");
        found = run(packages, requirements, address);
    }
    let differences = compared(&found, &expected);
    let passed = expected.iter().filter(|line| line.ends_with(" SUCCESS")).count();
    println!("figure: {requirements} through {what}: {} checks as expected, {passed} passed", expected.len());
    assert!(differences.is_empty(), "{requirements} through {what}: {differences:#?}");
}

/// A check as the suite has made it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Check {
    /// Scenario, check and result.
    line: String,
    /// What the suite says about it.
    told: String,
}

/// Runs one requirement set against an address.
fn run(packages: &Packages, requirements: &str, address: &str) -> Vec<Check> {
    let results = tempfile::tempdir().unwrap();
    let output = packages
        .node()
        .arg(packages.file("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", &format!("http://{address}/mcp"), "--requirements", requirements, "-o"])
        .arg(results.path())
        .output()
        .unwrap();
    let mut checks = read(results.path());
    assert!(!checks.is_empty(), "{requirements}: {}", String::from_utf8_lossy(&output.stdout));
    checks.sort();
    checks
}

fn read(results: &Path) -> Vec<Check> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(results).unwrap() {
        let folder = folder.unwrap();
        let text = std::fs::read(folder.path().join("checks.json")).unwrap();
        let checks: Value = serde_json::from_slice(&text).unwrap();
        let name = folder.file_name().into_string().unwrap();
        for check in checks.as_array().unwrap() {
            let [id, status] = ["id", "status"].map(|member| check[member].as_str().unwrap());
            let line = format!("{} {id} {status}", scenario(&name));
            found.push(Check { line, told: check["errorMessage"].to_string() });
        }
    }
    found
}

/// The name of a scenario, from the folder of its results, which has it between a word and the time.
fn scenario(folder: &str) -> &str {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    name.get(..name.len().saturating_sub("-2026-01-01T00-00-00-000Z".len())).unwrap_or(name)
}

/// A line that was found and not expected, or the other way round.
#[derive(Debug)]
#[expect(dead_code, reason = "most of it is there to be shown")]
struct Unexpected<'a> {
    line: &'a str,
    /// How often it was found more than it was expected.
    more: isize,
    told: &'a str,
}

impl Unexpected<'_> {
    fn is_hurried(&self) -> bool {
        HURRIED.iter().any(|scenario| self.line.starts_with(scenario))
    }
}

/// What was found and not expected, and the other way round. Equal lines count one by one.
fn compared<'a>(found: &'a [Check], expected: &'a [String]) -> Vec<Unexpected<'a>> {
    let mut counts: BTreeMap<&str, isize> = BTreeMap::new();
    for line in expected {
        *counts.entry(line).or_default() -= 1;
    }
    for check in found {
        *counts.entry(&check.line).or_default() += 1;
    }
    let told = |line: &str| found.iter().find(|check| check.line == line).map_or("", |check| check.told.as_str());
    let different = counts.into_iter().filter(|(_, count)| *count != 0);
    different.map(|(line, more)| Unexpected { line, more, told: told(line) }).collect()
}

/// The results of the demo server itself, with the differences in their places.
fn expected(requirements: &str, differences: &[&str]) -> Vec<String> {
    let (_, direct) = DIRECT.into_iter().find(|(name, _)| *name == requirements).unwrap();
    let mut expected: Vec<String> = direct.lines().map(str::to_owned).collect();
    for Difference { scenario, checks, .. } in differences.iter().flat_map(|list| read_differences(list, requirements))
    {
        for (check, result) in checks {
            let (name, before) = (format!("{scenario} {check} "), expected.clone());
            expected.retain(|line| !line.starts_with(&name));
            if result != NOT_MADE {
                expected.push(format!("{name}{result}"));
            }
            expected.sort();
            assert_ne!(expected, before, "{requirements}: {name}is {result} without a proxy, too");
        }
    }
    expected
}

/// A scenario that is not what it is without a proxy.
struct Difference<'a> {
    set: &'a str,
    scenario: &'a str,
    /// The checks that are different, and their results.
    checks: Vec<(&'a str, &'a str)>,
}

/// The differences of one requirement set. A line has the set, the scenario and the reason; lines with a check and its result
/// follow, after two spaces.
fn read_differences<'a>(list: &'a str, requirements: &str) -> Vec<Difference<'a>> {
    let mut differences: Vec<Difference<'a>> = Vec::new();
    for line in list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(check) = line.strip_prefix("  ") {
            let check = check.split_once(' ').unwrap_or_else(|| panic!("a check without a result: {line}"));
            differences.last_mut().unwrap_or_else(|| panic!("a check of nothing: {line}")).checks.push(check);
        } else {
            let (what, reason) = line.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"));
            let (set, scenario) = what.split_once(' ').unwrap_or_else(|| panic!("no scenario: {line}"));
            assert!(!reason.trim().is_empty(), "no reason: {line}");
            differences.push(Difference { set, scenario, checks: Vec::new() });
        }
    }
    for Difference { set, scenario, checks } in &differences {
        assert!(!checks.is_empty(), "{set} {scenario}: no check is different");
        assert!(DIRECT.iter().any(|(known, _)| known == set), "{set} {scenario}: there is no such requirement set");
    }
    differences.retain(|difference| difference.set == requirements);
    differences
}
