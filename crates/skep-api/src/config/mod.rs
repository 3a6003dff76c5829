//! The documents that the operator writes and the data plane reads.

pub mod vmcp;
