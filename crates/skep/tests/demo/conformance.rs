//! The public conformance suite before the demo server itself.

use std::collections::BTreeSet;

use crate::npm::Packages;
use crate::process::Server;
use crate::suite::{REFERENCE, run};

#[test]
fn the_public_suite_finds_nothing_that_its_reference_server_does_better() {
    let Some(packages) = Packages::get("the_public_suite_finds_nothing_that_its_reference_server_does_better") else {
        return;
    };
    for (requirements, reference) in REFERENCE {
        let server = Server::start("streamable-http");
        let (passed, failed) = run(&packages, requirements, &server.address, &BTreeSet::new());
        println!("{requirements}: {passed} passed, {} failed outside extensions", failed.len());
        assert_eq!(failed, Vec::<String>::new(), "{requirements}");
        assert!(passed >= reference, "{requirements}: {passed} passed, and {reference} of the reference server");
    }
}
