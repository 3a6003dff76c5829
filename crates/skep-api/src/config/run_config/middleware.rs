//! The chain of steps that every request passes, and the parameters of each.

use std::collections::BTreeMap;

use serde::Serialize;

use super::audit::AuditConfig;
use super::authz::AuthzConfig;
use super::aws_sts::AwsStsConfig;
use super::oidc::OidcConfig;
use super::rate_limit::RateLimitConfig;
use super::telemetry::TelemetryConfig;
use super::token_exchange::TokenExchangeConfig;
use super::tools::ToolAnnotations;
use super::upstream_swap::UpstreamSwapConfig;
use super::webhook::WebhookConfig;
use crate::config::document::{Misfit, Part, object, read, word};
use crate::config::strangers::Search;
use crate::config::vmcp::outgoing_strategies::Obo;
use crate::raw::RawValue;
use crate::sensitive::Sensitive;

object! {
    /// One step of the chain. The parameters are carried as they are, since a step may come from elsewhere;
    /// [`MiddlewareConfig::read_parameters`] reads them as one of the types below.
    pub struct MiddlewareConfig beyond look_into_parameters {
        always parameters: RawValue,
        always type_: MiddlewareType = "type",
    }
}

impl MiddlewareConfig {
    pub fn new(type_: MiddlewareType, parameters: &impl Serialize) -> Result<Self, serde_json::Error> {
        let parameters = RawValue(serde_json::to_value(parameters)?);
        Ok(Self { parameters, type_, ..Self::default() })
    }

    /// Null parameters give the defaults of the type.
    pub fn read_parameters<T: Part>(&self) -> Result<T, Misfit> {
        read(self.parameters.0.clone())
    }

    /// Parameters that cannot be read are told by whoever makes the step.
    fn look_as<T: Part>(&self, search: &mut Search) {
        if let Ok(parameters) = self.read_parameters::<T>() {
            parameters.find_strangers(search);
        }
    }
}

/// Parameters are read as what the type of the step says.
fn look_into_parameters(step: &MiddlewareConfig, search: &mut Search) {
    search.below("parameters", |search| match step.type_ {
        MiddlewareType::BodyLimit => step.look_as::<BodyLimitParameters>(search),
        MiddlewareType::Origin => step.look_as::<OriginParameters>(search),
        MiddlewareType::Audit => step.look_as::<AuditParameters>(search),
        MiddlewareType::Auth => step.look_as::<AuthParameters>(search),
        MiddlewareType::UpstreamSwap => step.look_as::<UpstreamSwapParameters>(search),
        MiddlewareType::TokenExchange => step.look_as::<TokenExchangeParameters>(search),
        MiddlewareType::ToolFilter | MiddlewareType::ToolCallFilter => step.look_as::<ToolFilterParameters>(search),
        MiddlewareType::StripAuth
        | MiddlewareType::McpParser
        | MiddlewareType::UsageMetrics
        | MiddlewareType::Recovery => step.look_as::<NoParameters>(search),
        MiddlewareType::Telemetry => step.look_as::<TelemetryParameters>(search),
        MiddlewareType::RateLimit => step.look_as::<RateLimitParameters>(search),
        MiddlewareType::MutatingWebhook | MiddlewareType::ValidatingWebhook => {
            step.look_as::<WebhookParameters>(search);
        }
        MiddlewareType::Authorization => step.look_as::<AuthorizationParameters>(search),
        MiddlewareType::AwsSts => step.look_as::<AwsStsParameters>(search),
        MiddlewareType::HeaderForward => step.look_as::<HeaderForwardParameters>(search),
        MiddlewareType::Obo => {
            let parameters: Obo = serde_json::from_value(step.parameters.0.clone()).unwrap_or_default();
            search.note(parameters.other.0.keys(), Obo::MEMBERS);
        }
        MiddlewareType::Other(_) => {}
    });
}

word! {
    /// The steps that Skep knows, in the order in which they stand in a generated chain, outermost first.
    pub enum MiddlewareType {
        /// Refuses bodies that are too large: [`BodyLimitParameters`].
        BodyLimit = "bodylimit",
        /// Refuses foreign origins: [`OriginParameters`]. Added at start, never written by the operator.
        Origin = "origin",
        /// Writes the audit log: [`AuditParameters`].
        Audit = "audit",
        /// Finds out who calls: [`AuthParameters`].
        Auth = "auth",
        /// Removes the caller's credentials: [`NoParameters`].
        StripAuth = "strip-auth",
        /// Sends the upstream token on: [`UpstreamSwapParameters`].
        UpstreamSwap = "upstreamswap",
        /// Exchanges the caller's token: [`TokenExchangeParameters`].
        TokenExchange = "tokenexchange",
        /// Hides and renames tools in lists: [`ToolFilterParameters`].
        ToolFilter = "tool-filter",
        /// Hides and renames tools in calls: [`ToolFilterParameters`].
        ToolCallFilter = "tool-call-filter",
        /// Reads the MCP message: [`NoParameters`].
        McpParser = "mcp-parser",
        /// Traces and counts: [`TelemetryParameters`].
        Telemetry = "telemetry",
        /// Limits tool calls: [`RateLimitParameters`].
        RateLimit = "ratelimit",
        /// Lets callbacks change requests: [`WebhookParameters`].
        MutatingWebhook = "mutating-webhook",
        /// Lets callbacks refuse requests: [`WebhookParameters`].
        ValidatingWebhook = "validating-webhook",
        /// Accepted, and does nothing: [`NoParameters`].
        UsageMetrics = "usagemetrics",
        /// Decides who may do what: [`AuthorizationParameters`].
        Authorization = "authorization",
        /// Signs requests to AWS: [`AwsStsParameters`].
        AwsSts = "awssts",
        /// Adds headers: [`HeaderForwardParameters`].
        HeaderForward = "header-forward",
        /// Exchanges tokens on behalf of the caller: [`Obo`].
        Obo = "obo",
        /// Turns panics into errors. Its parameters are null.
        Recovery = "recovery",
    }
}

object! {
    /// An empty object.
    pub struct NoParameters {}
}

object! {
    /// How large a request may be.
    pub struct BodyLimitParameters {
        always max_bytes: i64,
    }
}

impl BodyLimitParameters {
    pub const DEFAULT_MAX_BYTES: i64 = 8 * 1024 * 1024;
}

object! {
    /// The origins that browsers may call from.
    pub struct OriginParameters {
        always allowed_origins: Vec<String>,
    }
}

object! {
    /// What is audited.
    pub struct AuditParameters {
        omit component: String,
        omit config_data: Option<AuditConfig>,
        /// Read only when there is no `config_data`.
        omit config_path: String,
        omit transport_type: String,
    }
}

object! {
    /// How callers are known.
    pub struct AuthParameters {
        /// Without it every caller is the local user.
        omit oidc_config: Option<OidcConfig>,
    }
}

object! {
    /// Which upstream token is sent on.
    pub struct UpstreamSwapParameters {
        omit config: Option<UpstreamSwapConfig>,
    }
}

object! {
    /// How the caller's token is exchanged.
    pub struct TokenExchangeParameters {
        omit token_exchange_config: Option<TokenExchangeConfig>,
    }
}

object! {
    /// The tools that are shown, and under which names.
    pub struct ToolFilterParameters {
        /// Null when all tools are shown.
        always filter_tools: Option<Vec<String>>,
        /// The tools with other names, descriptions or hints, by their own names. Null when there are none.
        always tools_override: Option<BTreeMap<String, ToolOverrideParameters>>,
    }
}

object! {
    /// How one tool is shown. Unlike at the top of the document name and description are always written.
    pub struct ToolOverrideParameters {
        /// Not in the reference.
        omit annotations: Option<ToolAnnotations>,
        always description: String,
        always name: String,
    }
}

object! {
    /// What is traced and counted.
    pub struct TelemetryParameters {
        always config: Option<TelemetryConfig>,
        always server_name: String,
        always transport: String,
    }
}

object! {
    /// The limits, and the Redis server that counts.
    pub struct RateLimitParameters {
        always config: Option<RateLimitConfig>,
        always namespace: String,
        omit redis_addr: String,
        omit redis_db: i32,
        always server_name: String,
    }
}

object! {
    /// The callbacks, in their order.
    pub struct WebhookParameters {
        always server_name: String,
        always transport: String,
        always webhooks: Vec<WebhookConfig>,
    }
}

object! {
    /// Who may do what.
    pub struct AuthorizationParameters {
        omit config_data: Option<AuthzConfig>,
        /// Read only when there is no `config_data`.
        omit config_path: String,
    }
}

object! {
    /// How requests are signed.
    pub struct AwsStsParameters {
        omit aws_sts_config: Option<AwsStsConfig>,
        /// The remote server, whose host is signed.
        omit target_url: String,
    }
}

object! {
    /// The headers to set, with their values.
    pub struct HeaderForwardParameters {
        always add_headers: BTreeMap<String, Sensitive>,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_always_written() {
        let recovery = MiddlewareConfig { type_: MiddlewareType::Recovery, ..MiddlewareConfig::default() };
        assert_eq!(serde_json::to_value(recovery).unwrap(), json!({ "parameters": null, "type": "recovery" }));
        let strip = MiddlewareConfig::new(MiddlewareType::StripAuth, &NoParameters::default()).unwrap();
        assert_eq!(serde_json::to_value(strip).unwrap(), json!({ "parameters": {}, "type": "strip-auth" }));
    }

    #[test]
    fn parameters_can_be_read() {
        let limit = BodyLimitParameters { max_bytes: 7, ..BodyLimitParameters::default() };
        let step = MiddlewareConfig::new("bodylimit".into(), &limit).unwrap();
        assert_eq!(step.read_parameters::<BodyLimitParameters>(), Ok(limit));
        let broken = MiddlewareConfig::new("bodylimit".into(), &json!({ "max_bytes": "x" })).unwrap();
        assert_eq!(broken.read_parameters::<BodyLimitParameters>().unwrap_err().path, "max_bytes");
    }

    #[test]
    fn debug_shows_no_parameter() {
        let step = json!({ "type": "header-forward", "parameters": { "add_headers": { "X-Key": "hunter2" } } });
        let step: MiddlewareConfig = read(step).unwrap();
        let headers = step.read_parameters::<HeaderForwardParameters>().unwrap();
        assert!(!format!("{step:?} {headers:?}").contains("hunter2"));
    }
}
