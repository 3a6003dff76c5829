//! Runs the pods of a Kubernetes API server as processes of this machine.
//!
//! The lower layers (`isolation`, `broker`, `container`, `network`) know nothing of Kubernetes: they make namespaces,
//! start processes in them and connect them. The layers above turn pods into calls of these.
//!
//! A program that uses this crate must call [`become_helper`] as the first thing in `main`: the processes between the
//! program and its containers are the same program, started again.
#![cfg(target_os = "linux")]

pub mod broker;
mod channel;
pub mod container;
pub mod folder;
pub mod hang_up;
pub mod image;
pub mod isolation;
pub mod kubelet;
pub mod log;
mod mark;
pub mod member;
pub mod network;
pub mod node;
mod pod;
pub mod service;
mod sys;
mod volume;

pub use pod::backoff::BackoffRules;

/// Does the work of a helper process and never returns, when this process was started as one. Call it first in `main`,
/// before any thread exists.
pub fn become_helper() {
    isolation::become_guard();
    container::become_init();
}
