//! Replacing the token of the embedded authorization server by the one of the upstream identity provider.

use super::token_exchange::HeaderStrategy;
use crate::config::document::object;

object! {
    /// Which upstream token is sent on, and where.
    pub struct UpstreamSwapConfig {
        /// The header that gets the token when the strategy is custom.
        omit custom_header_name: String,
        omit header_strategy: HeaderStrategy,
        /// The upstream; empty means the first one of the authorization server.
        omit provider_name: String,
    }
}
