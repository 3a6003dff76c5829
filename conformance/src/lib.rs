//! What Skep is measured against: a real Kubernetes control plane for tests, and the tables of data that run on it.

pub mod api_server;
pub mod control_plane;
mod files;
pub mod kube;
pub mod kubectl;
pub mod node;
mod process;
pub mod race;
pub mod skip;
pub mod validation;
