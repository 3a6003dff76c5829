//! The parity suite of the Kubernetes API: the same requests to a real API server and to ours, and the same answers.
//!
//! `conformance/kube/<area>/<name>.yaml` holds scenarios (see the README there). A scenario runs in a namespace of its
//! own, every answer is recorded, and what differs from run to run is normalised away, so that two recordings can be
//! compared. `conformance/kube/golden` holds the recordings of the real server.

mod compare;
mod definition;
mod expectation;
mod golden;
mod ignore;
mod normalise;
mod recording;
mod request;
mod run;
mod scenario;
mod server;
mod template;
mod watch;

use std::path::{Path, PathBuf};

pub use crate::files::LoadError;
pub use compare::{Difference, KnownDifference, compare, known_differences, stale, unknown};
pub use golden::{GoldenError, golden, write_golden};
pub(crate) use normalise::{Texts, is_age};
pub use recording::{Exchange, Recording};
pub use run::{Outcome, remove, run, run_all};
pub use scenario::{Scenario, Step, callers, load};
pub use server::{CallError, Caller, ClientServer, Server};

/// The folder of the scenarios.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kube")
}
