//! Headers that are added to requests to a remote server.

use std::collections::BTreeMap;

use crate::config::document::object;
use crate::sensitive::Sensitive;

/// Headers that say how a message travels, or where it comes from, in lower case. The proxy decides on them, and nobody else
/// can set them.
pub const RESERVED_HEADERS: [&str; 17] = [
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-connection",
    "transfer-encoding",
    "content-length",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

object! {
    /// Headers that are added to requests to a remote server. A header in both maps gets the secret value.
    pub struct HeaderForwardConfig {
        /// The id of a secret for each header; the values come from the environment.
        omit add_headers_from_secret: BTreeMap<String, String>,
        omit add_plaintext_headers: BTreeMap<String, Sensitive>,
    }
}
