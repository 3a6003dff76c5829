//! How many requests are let through.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::duration::{DurationError, DurationText};
use crate::raw::RawObject;

/// Limits on the number of tool calls, as token buckets. All that apply to a call must have a token left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.shared) || has(self.perUser) || (has(self.tools) && size(self.tools) > 0)",
        "message": "at least one of shared, perUser, or tools must be configured",
    },
]))]
pub struct RateLimiting {
    /// One bucket for each user. Needs authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_user: Option<TokenBucket>,
    /// One bucket for all users together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<TokenBucket>,
    /// Further limits for single tools.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub tools: Vec<ToolRateLimit>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// The limits of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.shared) || has(self.perUser)", "message": "at least one of shared or perUser must be configured" },
]))]
pub struct ToolRateLimit {
    /// The name of the tool.
    #[schemars(length(min = 1))]
    pub name: String,
    /// One bucket for each user. Needs authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_user: Option<TokenBucket>,
    /// One bucket for all users together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<TokenBucket>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// A bucket that holds some number of tokens and fills again within a period. A call takes one token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenBucket {
    /// How many tokens the bucket holds.
    #[schemars(range(min = 1))]
    pub max_tokens: i32,
    /// How long an empty bucket takes to fill up, for example `1m0s`.
    pub refill_period: RefillPeriod,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// A period, written as text. Where it is read, `{duration: 1m0s}` is accepted too, which is how the configuration
/// file of a vMCP process writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PeriodForms", into = "PeriodForms")]
pub struct RefillPeriod {
    /// The period itself.
    pub text: DurationText,
    /// Members beside `duration` that Skep does not know, kept as they are. A text has none.
    pub other: RawObject,
}

impl RefillPeriod {
    pub fn parse(&self) -> Result<Duration, DurationError> {
        self.text.parse()
    }
}

impl From<&str> for RefillPeriod {
    fn from(text: &str) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl From<Duration> for RefillPeriod {
    fn from(duration: Duration) -> Self {
        Self { text: duration.into(), ..Self::default() }
    }
}

impl JsonSchema for RefillPeriod {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RefillPeriod".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a duration such as 1m0s, as text or under the key duration")]
enum PeriodForms {
    Text(DurationText),
    Nested {
        duration: DurationText,
        #[serde(flatten)]
        other: RawObject,
    },
}

impl From<PeriodForms> for RefillPeriod {
    fn from(form: PeriodForms) -> Self {
        match form {
            PeriodForms::Text(text) => Self { text, ..Self::default() },
            PeriodForms::Nested { duration: text, other } => Self { text, other },
        }
    }
}

impl From<RefillPeriod> for PeriodForms {
    fn from(RefillPeriod { text: duration, other }: RefillPeriod) -> Self {
        if other.is_empty() { Self::Text(duration) } else { Self::Nested { duration, other } }
    }
}
