//! Exchanging the caller's token for another before a request goes on.

use crate::config::document::{object, word};
use crate::sensitive::Sensitive;

object! {
    /// Token exchange after RFC 8693.
    pub struct TokenExchangeConfig {
        always audience: String,
        always client_id: String,
        /// The operator leaves it empty and passes the secret in the environment.
        always client_secret: Sensitive,
        /// The header that gets the new token when the strategy is custom.
        omit external_token_header_name: String,
        omit header_strategy: HeaderStrategy,
        omit scopes: Vec<String>,
        /// The upstream identity provider whose token is exchanged; the caller's own when empty. The operator never writes it.
        omit subject_provider_name: String,
        /// A URN.
        omit subject_token_type: String,
        always token_url: String,
    }
}

word! {
    /// Where a token that the proxy obtained is put.
    pub enum HeaderStrategy {
        /// In place of the caller's `Authorization`.
        Replace = "replace",
        /// In a header of its own.
        Custom = "custom",
    }
}
