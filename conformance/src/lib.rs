//! What Skep is measured against: a real Kubernetes control plane for tests, and the tables of data that run on it.

pub mod control_plane;
pub mod kube;
pub mod skip;
pub mod validation;
