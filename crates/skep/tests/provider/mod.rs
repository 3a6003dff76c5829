//! An OpenID provider that somebody else wrote: `oidc-provider` from npm.

use std::path::PathBuf;
use std::process::Command;

use skep_conformance::skip::skip_outside_ci;

use crate::once;

/// Exactly what is installed. The provider needs a newer Node than most machines have.
const PACKAGES: [&str; 2] = ["oidc-provider@9.13.3", "node@22.23.3"];
/// What is run, by Node of those packages, in their folder.
pub(crate) const NODE: &str = "node_modules/.bin/node";
pub(crate) const SCRIPT: &str = include_str!("provider.mjs");
/// Whom its tokens are for, unless they are for `elsewhere`.
pub(crate) const AUDIENCE: &str = "https://hive.example/mcp";
/// What its clients prove themselves with.
pub(crate) const CLIENT_SECRET: &str = "honey";

/// The folder of the packages, or nothing when this machine cannot have them; then the test is recorded as skipped.
pub(crate) fn install(test: &str) -> Option<PathBuf> {
    let installed = once::install("npm", &PACKAGES.join("+"), |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix"]).arg(folder).args(PACKAGES);
        npm
    });
    installed.map_err(|reason| skip_outside_ci(test, &reason)).ok()
}

/// What a client says to get a token for a resource.
pub(crate) fn form(resource: &str) -> String {
    format!("grant_type=client_credentials&resource=https%3A%2F%2Fhive.example%2F{resource}")
}
