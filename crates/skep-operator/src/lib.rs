//! The operator: custom resources become Deployments, Services and configuration, and report how they fare.
//!
//! A controller is a function from what is observed to what is desired. It reads from watched copies, writes through
//! [`write`] alone, and at rest writes nothing.

mod ca_bundle;
pub mod cluster;
pub mod config;
pub mod controller;
pub mod election;
pub mod events;
mod failure;
pub mod handshake;
mod header_names;
pub mod health;
mod id;
pub mod manifests;
pub mod mcp_remote_proxy;
pub mod mcp_server;
mod members;
pub mod metrics;
mod migration;
mod object_names;
pub mod openshift;
pub mod operator;
mod place;
pub mod proxy;
pub mod runner;
pub mod settings;
mod time;
pub mod write;

pub use failure::Failure;
pub use id::ObjectId;
