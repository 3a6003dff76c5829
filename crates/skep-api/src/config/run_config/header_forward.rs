//! Headers that are added to requests to a remote server.

use std::collections::BTreeMap;

use crate::config::document::object;
use crate::sensitive::Sensitive;

object! {
    /// Headers that are added to requests to a remote server. A header in both maps gets the secret value.
    pub struct HeaderForwardConfig {
        /// The id of a secret for each header; the values come from the environment.
        omit add_headers_from_secret: BTreeMap<String, String>,
        omit add_plaintext_headers: BTreeMap<String, Sensitive>,
    }
}
