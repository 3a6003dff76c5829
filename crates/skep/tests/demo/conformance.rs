//! The public conformance suite before the demo server itself.

use crate::npm::Packages;
use crate::process::Server;
use crate::suite::{DIRECT, check};

/// What the suite's own reference server passes (checks that succeed, by requirement set).
const REFERENCE: [(&str, usize); 2] = [("2025-11-25", 84), ("2026-07-28", 130)];
/// Scenarios of extensions that the demo server does not have. They are not scored.
const EXTENSIONS: [&str; 2] = ["tasks-", "sep-2640-"];

#[test]
fn the_public_suite_finds_nothing_that_its_reference_server_does_better() {
    for ((requirements, direct), (same, reference)) in DIRECT.into_iter().zip(REFERENCE) {
        assert_eq!(requirements, same);
        let passed = direct.lines().filter(|line| line.ends_with(" SUCCESS")).count();
        assert!(passed >= reference, "{requirements}: {passed} passed");
        let has_failed = |line: &&str| line.ends_with(" FAILURE") || line.ends_with(" WARNING");
        for line in direct.lines().filter(has_failed) {
            assert!(EXTENSIONS.iter().any(|extension| line.starts_with(extension)), "{requirements}: {line}");
        }
    }
    let Some(packages) = Packages::get("the_public_suite_finds_nothing_that_its_reference_server_does_better") else {
        return;
    };
    check(&packages, "no proxy", &Server::start("streamable-http").address, &[]);
}
