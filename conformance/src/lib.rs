//! What Skep is measured against: a real Kubernetes control plane for tests, the tables of data that run on it, and a
//! real Redis.

pub mod api_server;
pub mod changes;
pub mod control_plane;
pub mod definitions;
mod files;
pub mod kube;
pub mod kubectl;
pub mod node;
pub mod ports;
pub mod process;
pub mod processes;
pub mod race;
pub mod redis;
pub mod skip;
pub mod validation;
