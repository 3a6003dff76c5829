//! What a proxy never does, whatever it is told.
//!
//! The proxy keeps to it, and the operator refuses manifests that would make a proxy refuse to start. Both have to mean the
//! same, so it stands here, once. Nothing here looks names up, and nothing knows who is asked or why.

pub mod address;
pub mod headers;
