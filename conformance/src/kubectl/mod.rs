//! Scripts of kubectl commands, run on a real cluster and on ours, with the same output.
//!
//! `conformance/kubectl/<name>.yaml` holds scripts (see the README there). A script runs in a namespace of its own, what
//! kubectl prints is recorded, and what differs from run to run is normalised away. `conformance/kubectl/golden` holds
//! the transcripts of the real cluster.

mod follow;
mod normalise;
mod run;
mod script;
mod transcript;
mod words;

use std::path::{Path, PathBuf};

pub use run::{Kubectl, RunError, run_all};
pub use script::{Script, Step, load};
pub use transcript::{Difference, Entry, Transcript, TranscriptError, compare, golden, write_golden};

/// The folder of the scripts.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kubectl")
}
