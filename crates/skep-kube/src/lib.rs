//! A Kubernetes API server for one machine, and the workload controllers that go with it.
//!
//! Everything above it talks to it through a `kube::Client`, as it would to a real cluster. It knows nothing of
//! Skep's kinds: they are custom resources like any others.

pub mod age;
pub mod apply;
pub mod auth;
pub mod builtin;
pub mod controllers;
pub mod decode;
pub mod go_text;
mod go_time;
pub mod json_path;
pub mod names;
pub mod patch;
mod percent;
pub mod protobuf;
pub mod schema;
pub mod selector;
pub mod server;
mod sorted;
pub mod status;
pub mod store;
pub mod yaml;
