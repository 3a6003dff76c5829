//! How many tool calls are let through.

use crate::config::document::object;
use crate::duration::DurationText;

object! {
    /// Limits on tool calls. Member names are in camel case, as in the API.
    pub struct RateLimitConfig {
        /// One bucket for each user.
        omit per_user: Option<TokenBucket> = "perUser",
        /// One bucket for all users together.
        omit shared: Option<TokenBucket>,
        omit tools: Vec<ToolRateLimit>,
    }
}

object! {
    /// The limits of one tool.
    pub struct ToolRateLimit {
        always name: String,
        omit per_user: Option<TokenBucket> = "perUser",
        omit shared: Option<TokenBucket>,
    }
}

object! {
    /// A bucket of tokens that fills again within a period.
    pub struct TokenBucket {
        always max_tokens: i64 = "maxTokens",
        /// In Go's notation, such as `1m0s`.
        always refill_period: DurationText = "refillPeriod",
    }
}
