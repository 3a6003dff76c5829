//! The public conformance suite before the demo server itself.

use crate::npm::Packages;
use crate::process::Server;
use crate::suite::check;

#[test]
fn the_public_suite_finds_nothing_that_its_reference_server_does_better() {
    let Some(packages) = Packages::get("the_public_suite_finds_nothing_that_its_reference_server_does_better") else {
        return;
    };
    check(&packages, "no proxy", &Server::start("streamable-http").address, &[]);
}
