//! What `skep proxy run` is made of: the document that says what to do, and the proxy that does it.

#[cfg(test)]
mod agreed;
mod audit;
mod aws_sts;
mod by_hand;
mod chain;
mod document;
mod environment;
mod eras;
mod front;
mod in_cluster;
mod mounted;
mod oidc;
mod order;
mod outgoing;
mod plain;
mod pods;
mod policy;
mod program;
mod rate_limit;
mod seal_key;
mod secrets;
mod sections;
mod serve;
mod telemetry;
mod tied;
#[cfg(test)]
mod written;

pub(crate) use by_hand::read as by_hand;
pub(crate) use chain::build as build_chain;
pub(crate) use document::{Given, resolve};
pub(crate) use eras::read as read_eras;
pub(crate) use front::Front;
pub(crate) use in_cluster::serve_image;
pub(crate) use serve::{Requests, serve_command, serve_url};
pub use tied::become_command;

/// Looks variables of the environment up.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;
