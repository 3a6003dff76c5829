//! The documents that the operator writes and the data plane reads.

pub mod document;
pub mod run_config;
pub mod strangers;
pub mod vmcp;
