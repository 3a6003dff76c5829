//! Generated files are current.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

#[test]
fn generated_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let stale = skep::reference::stale(&root).unwrap();
    assert!(stale.is_empty(), "run `cargo xtask generate`; out of date: {stale:?}");
}
