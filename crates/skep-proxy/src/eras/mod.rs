//! Clients and servers of different eras at one address.
//!
//! A client of sessions may meet a server whose requests stand alone ([`legacy_client`]), and a client whose requests
//! stand alone may meet a server of sessions ([`modern_client`]). Which era a server is of is found out once
//! ([`verdict`]), and whoever is of the same era as the server is not here at all: those messages pass as they are.
//!
//! Nothing here knows how a server is reached; that is a [`line::Line`].

pub(crate) mod alone;
pub(crate) mod begun_tasks;
mod call;
pub(crate) mod changes;
pub(crate) mod dialled;
pub(crate) mod holder;
pub(crate) mod http;
pub(crate) mod json_body;
pub(crate) mod legacy_client;
pub(crate) mod line;
pub(crate) mod listen;
pub(crate) mod listeners;
pub(crate) mod modern_client;
pub(crate) mod parking;
pub(crate) mod pool;
mod reading;
pub(crate) mod record;
mod room;
mod rounds;
pub(crate) mod seal;
pub(crate) mod server_session;
pub(crate) mod session_tasks;
pub(crate) mod settings;
pub(crate) mod surroundings;
mod tasks;
pub(crate) mod unanswered;
pub(crate) mod verdict;

use serde_json::json;

/// Who we are, to servers.
pub(crate) fn own_name() -> String {
    json!({"name": "skep", "version": env!("CARGO_PKG_VERSION")}).to_string()
}
