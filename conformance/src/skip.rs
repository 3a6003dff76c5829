//! Tests that cannot run here say so out loud, and `cargo xtask test` counts them as skipped.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Names the file to which each skipped test adds a line. `cargo xtask test` sets it.
pub const LOG_VARIABLE: &str = "SKEP_SKIPPED_LOG";

/// Whether this is a CI run, by the variable that CI systems set.
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false")
}

/// Records that a test did not run for want of something that a CI run must have: a tool, or the way to a registry.
///
/// # Panics
///
/// In CI, where it would hide the test; and as [`skip`].
pub fn skip_outside_ci(test: &str, reason: &str) {
    assert!(!in_ci(), "{test} must run in CI: {reason}");
    skip(test, reason);
}

/// Records that a test did not run.
///
/// # Panics
///
/// When the record cannot be written: a test that is skipped in silence is worse than one that fails.
#[expect(clippy::panic, reason = "it runs in tests only, and failing the test is its purpose")]
pub fn skip(test: &str, reason: &str) {
    // The test harness swallows what `eprintln!` prints in a test that passes, but not this.
    let told = writeln!(std::io::stderr(), "\n*** SKIPPED {test}: {reason} ***\n");
    if let Err(error) = told {
        panic!("cannot say that {test} is skipped: {error}");
    }
    if let Some(path) = std::env::var_os(LOG_VARIABLE) {
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut log| writeln!(log, "{test}: {reason}"));
        if let Err(error) = written {
            panic!("cannot record the skipped test in {}: {error}", path.display());
        }
    }
}
