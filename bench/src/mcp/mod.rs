//! Real MCP sessions over loopback: servers, what stands before them, and clients. Everything but the clients is in a
//! process of its own, all of them on one machine.

pub(crate) mod client;
pub(crate) mod load;
pub(crate) mod part;
mod process;

pub(crate) use part::Part;
pub(crate) use process::Process;
