//! Pods: from what the API server wants to processes, and from processes to the status that it gets.
//!
//! Every pod has a task (`actor`) that gives it a network and volumes, starts a driver (`drive`) for each container in
//! the right order, and reports what all of them say. Decisions are pure functions (`status`, `backoff`, `probe::verdict`,
//! `environment`); everything that waits can be cancelled.

mod actor;
pub(crate) mod backoff;
mod containers;
mod context;
mod drive;
mod ending;
mod environment;
pub(crate) mod expand;
pub(crate) mod field;
mod files;
mod handle;
mod hook;
mod plain;
mod prepare;
mod probe;
mod probing;
mod report;
mod resolver;
mod run;
mod state;
mod status;
mod streams;
mod unhonoured;

pub(crate) use context::{Live, Node, NodeFolders, wish};
pub(crate) use handle::{Handle, spawn};
pub(crate) use report::report_ended;
pub(crate) use state::whole;
pub(crate) use streams::{Attachment, Streams};
