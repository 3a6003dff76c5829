//! The chains that are measured: steps as the operator writes them, in its order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use skep_proxy::fetch::TlsFiles;
use skep_proxy::middleware::{
    Audit, AuditSettings, Authentication, Authorizer, AwsSts, AwsStsSettings, Bucket, CallLimits, CedarSettings, Chain,
    ClaimMapping, CollectorSettings, FailurePolicy, ForwardHeaders, Middleware, Oidc, OidcSettings, OnBehalfOf,
    OnBehalfOfSettings, PdpSettings, Power, RateLimit, RateLimits, Secret, Step, Telemetry, TelemetrySettings,
    TokenExchange, TokenExchangeSettings, ToolRules, WebhookSettings, Webhooks,
};
use skep_proxy::{Redis, RedisSettings};

use super::companion::{AUDIENCE, CHANGING, CHECKING, INTROSPECTION, ISSUER, KEYS, ROLES, TOKENS};
use super::policies::policies;

/// What the server and its transport are called.
const SERVER: &str = "bench";
const TRANSPORT: &str = "streamable-http";
/// Which share of traces is told, unless a configuration says something else.
const SHARE: f64 = 0.05;
const PATIENCE: Duration = Duration::from_secs(10);

/// One concern of a chain. They stand in the order in which they are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Layer {
    /// Records to a file.
    Audit,
    /// Everybody is the local user.
    Local,
    /// Tokens that are signed with RS256.
    Jwt,
    /// Tokens that only their issuer understands.
    Introspection,
    StripCredentials,
    TokenExchange,
    /// Lists of tools, and calls of them.
    Tools,
    Parse,
    /// Metrics, and some traces, to a collector.
    Telemetry,
    /// Counted in Redis.
    RateLimit,
    /// Counted in the process itself.
    LocalRateLimit,
    MutatingWebhook,
    ValidatingWebhook,
    /// So many policies.
    Cedar(usize),
    /// A decision point that is asked about every call.
    Pdp,
    /// Credentials of AWS, with which every request is signed.
    AwsSts,
    Headers,
    OnBehalfOf,
    Recover,
    /// A token of ours. The operator writes no step for it: the proxy adds one at the end.
    BearerToken,
}

/// What the operator writes for a server that asks for nothing. The limit of bodies, which comes first in its list, is a
/// matter of the proxy itself.
pub(crate) const DEFAULT: [Layer; 3] = [Layer::Local, Layer::Parse, Layer::Recover];

impl Layer {
    /// The chain of a server that asks for these.
    pub(crate) fn chain(asked: &[Self]) -> Vec<Self> {
        let is_asking = |layer: &Self| matches!(layer, Self::Jwt | Self::Introspection);
        let is_replaced = |layer: &Self| *layer == Self::Local && asked.iter().any(is_asking);
        let mut chain: Vec<Self> =
            DEFAULT.into_iter().filter(|layer| !is_replaced(layer)).chain(asked.iter().copied()).collect();
        chain.sort_unstable();
        chain
    }
}

/// What a chain finds around it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Around {
    /// Everybody who is asked.
    pub(crate) companion: SocketAddr,
    /// Where a Redis is, if there is one.
    pub(crate) redis: Option<String>,
    /// Where files can be written.
    pub(crate) folder: PathBuf,
}

impl Around {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.companion)
    }

    /// What tokens have to be like.
    pub(crate) fn oidc(&self) -> OidcSettings {
        OidcSettings {
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            key_set_url: self.url(KEYS),
            introspection_url: self.url(INTROSPECTION),
            client_id: SERVER.to_owned(),
            client_secret: "honey".to_owned(),
            allows_private: true,
            allows_http: true,
            ..OidcSettings::default()
        }
    }

    fn token_exchange(&self) -> TokenExchangeSettings {
        TokenExchangeSettings {
            token_url: self.url(TOKENS),
            client_id: SERVER.to_owned(),
            client_secret: "honey".to_owned(),
            audience: "backend".to_owned(),
            ..TokenExchangeSettings::default()
        }
    }

    fn on_behalf_of(&self) -> OnBehalfOfSettings {
        OnBehalfOfSettings {
            token_url: self.url(TOKENS),
            client_id: SERVER.to_owned(),
            client_secret: "honey".to_owned(),
            audience: "backend".to_owned(),
            ..OnBehalfOfSettings::default()
        }
    }

    fn aws_sts(&self) -> AwsStsSettings {
        AwsStsSettings {
            region: "eu-central-1".to_owned(),
            service: "aws-mcp".to_owned(),
            fallback_role: "arn:aws:iam::123456789012:role/bees".to_owned(),
            role_mappings: Vec::new(),
            role_claim: "groups".to_owned(),
            session_name_claim: "sub".to_owned(),
            session_duration: 3600,
            endpoint: self.url(ROLES),
        }
    }

    fn pdp(&self) -> PdpSettings {
        PdpSettings {
            // The authorizer adds the path.
            url: self.url(""),
            timeout: Some(PATIENCE),
            is_unverified: false,
            tells_arguments: true,
            tells_operation: true,
            claims: ClaimMapping::Standard,
            server: SERVER.to_owned(),
        }
    }

    fn webhooks(&self, power: Power) -> anyhow::Result<Webhooks> {
        let path = if power == Power::Change { CHANGING } else { CHECKING };
        let hook = WebhookSettings {
            name: "hook".to_owned(),
            url: self.url(path),
            timeout: PATIENCE,
            failure_policy: FailurePolicy::Fail,
            tls: TlsFiles { is_unverified: true, ..TlsFiles::default() },
            secret: Some(Secret::Value(b"honey".to_vec())),
        };
        Ok(Webhooks::new(power, vec![hook], SERVER, TRANSPORT)?)
    }

    fn telemetry(&self) -> TelemetrySettings {
        let collector = CollectorSettings {
            is_insecure: true,
            traces: Some(SHARE),
            has_metrics: true,
            ..CollectorSettings::new(&self.companion.to_string())
        };
        TelemetrySettings {
            server: SERVER.to_owned(),
            transport: TRANSPORT.to_owned(),
            has_legacy_attributes: true,
            collector: Some(collector),
            ..TelemetrySettings::default()
        }
    }

    fn audit(&self) -> AuditSettings {
        let file = self.folder.join(format!("audit-{}.json", std::process::id()));
        AuditSettings {
            component: SERVER.to_owned(),
            transport: TRANSPORT.to_owned(),
            file: Some(file),
            ..AuditSettings::default()
        }
    }

    async fn rate_limit(&self) -> anyhow::Result<RateLimit> {
        let address = self.redis.as_ref().context("there is no Redis")?;
        let redis = Redis::connect(&RedisSettings::new(address)).await?;
        Ok(RateLimit::in_redis(limits(), &redis)?)
    }
}

/// Limits that count, and refuse nothing.
fn limits() -> RateLimits {
    let bucket = Some(Bucket { tokens: u32::MAX, period: Duration::from_secs(1) });
    RateLimits {
        namespace: SERVER.to_owned(),
        server: SERVER.to_owned(),
        all: CallLimits { shared: bucket, per_user: bucket },
        ..RateLimits::default()
    }
}

/// The policies of a server, so many of them.
pub(crate) fn cedar(count: usize) -> CedarSettings {
    CedarSettings { policies: policies(count), server: SERVER.to_owned(), ..CedarSettings::default() }
}

fn headers(headers: &[(&str, &str)]) -> anyhow::Result<Step> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Ok(Step::ForwardHeaders(ForwardHeaders::new(&headers.collect())?))
}

/// A chain, ready for requests.
pub(super) async fn middleware(layers: &[Layer], around: Option<&Around>) -> anyhow::Result<Middleware> {
    let mut steps = Vec::new();
    for layer in layers {
        steps.extend(self::steps(*layer, around).await?);
    }
    Ok(Middleware::new(Chain::new(steps)))
}

async fn steps(layer: Layer, around: Option<&Around>) -> anyhow::Result<Vec<Step>> {
    let around = || around.with_context(|| format!("{layer:?} needs something around it"));
    Ok(vec![match layer {
        Layer::Audit => Step::Audit(Audit::new(around()?.audit())?),
        Layer::Local => Step::Authenticate(Authentication::Local),
        Layer::Jwt | Layer::Introspection => {
            Step::Authenticate(Authentication::Oidc(Box::new(Oidc::new(&around()?.oidc())?)))
        }
        Layer::StripCredentials => Step::StripCredentials,
        Layer::TokenExchange => Step::ExchangeToken(TokenExchange::new(around()?.token_exchange())?),
        Layer::Tools => {
            let shown = ["echo", "large"].map(str::to_owned).into();
            let rules = ToolRules::new(shown, std::collections::BTreeMap::new())?;
            return Ok(vec![Step::ToolLists(rules.clone()), Step::ToolCalls(rules)]);
        }
        Layer::Parse => Step::Parse,
        Layer::Telemetry => Step::Telemetry(Telemetry::new(around()?.telemetry())?),
        Layer::RateLimit => Step::LimitRates(around()?.rate_limit().await?),
        Layer::LocalRateLimit => Step::LimitRates(RateLimit::in_memory(limits())?),
        Layer::MutatingWebhook => Step::Webhooks(around()?.webhooks(Power::Change)?),
        Layer::ValidatingWebhook => Step::Webhooks(around()?.webhooks(Power::Refuse)?),
        Layer::Cedar(count) => Step::Authorize(Authorizer::cedar(cedar(count))?),
        Layer::Pdp => Step::Authorize(Authorizer::pdp(around()?.pdp())?),
        Layer::AwsSts => Step::SignForAws(AwsSts::new(around()?.aws_sts())?),
        Layer::Headers => headers(&[("x-tenant", "bees"), ("x-api-key", "honey")])?,
        Layer::OnBehalfOf => Step::ActOnBehalf(OnBehalfOf::new(&around()?.on_behalf_of())?),
        Layer::Recover => Step::Recover,
        Layer::BearerToken => headers(&[("authorization", "Bearer honey")])?,
    }])
}

#[cfg(test)]
mod tests {
    use skep_api::config::run_config::RunConfig;
    use skep_operator::proxy::run_config;

    use super::*;

    /// What the operator calls a layer.
    fn types(layer: Layer) -> &'static [&'static str] {
        match layer {
            Layer::Audit => &["audit"],
            Layer::Local | Layer::Jwt | Layer::Introspection => &["auth"],
            Layer::StripCredentials => &["strip-auth"],
            Layer::TokenExchange => &["tokenexchange"],
            Layer::Tools => &["tool-filter", "tool-call-filter"],
            Layer::Parse => &["mcp-parser"],
            Layer::Telemetry => &["telemetry"],
            Layer::RateLimit | Layer::LocalRateLimit => &["ratelimit"],
            Layer::MutatingWebhook => &["mutating-webhook"],
            Layer::ValidatingWebhook => &["validating-webhook"],
            Layer::Cedar(_) | Layer::Pdp => &["authorization"],
            Layer::AwsSts => &["awssts"],
            Layer::Headers => &["header-forward"],
            Layer::OnBehalfOf => &["obo"],
            Layer::Recover => &["recovery"],
            Layer::BearerToken => &[],
        }
    }

    /// What the operator writes for a document.
    fn written(document: &str) -> Vec<String> {
        let chain = run_config::chain(&RunConfig::from_json(document).unwrap()).unwrap();
        chain.iter().map(|step| step.type_.as_str().to_owned()).collect()
    }

    fn measured(chain: &[Layer]) -> Vec<String> {
        let types = chain.iter().flat_map(|layer| types(*layer));
        ["bodylimit"].iter().chain(types).map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_default_chain_is_what_the_operator_writes_when_nothing_is_asked_for() {
        assert_eq!(measured(&DEFAULT), written(r#"{"transport": "streamable-http"}"#));
        assert_eq!(Layer::chain(&[]), DEFAULT);
    }

    #[test]
    fn a_chain_with_everything_has_the_operators_order() {
        let everything = Layer::chain(&[
            Layer::OnBehalfOf,
            Layer::Headers,
            Layer::AwsSts,
            Layer::Cedar(1),
            Layer::ValidatingWebhook,
            Layer::MutatingWebhook,
            Layer::RateLimit,
            Layer::Telemetry,
            Layer::Tools,
            Layer::TokenExchange,
            Layer::Jwt,
            Layer::Audit,
        ]);
        let document = r#"{
            "transport": "streamable-http",
            "remote_url": "https://hive.example/mcp",
            "audit_config": {},
            "oidc_config": {"Issuer": "https://issuer.example"},
            "token_exchange_config": {"token_url": "https://issuer.example/token"},
            "tools_filter": ["echo"],
            "telemetry_config": {"endpoint": "collector:4318", "tracingEnabled": true},
            "rate_limit_config": {"shared": {"maxTokens": 1, "refillPeriod": "1s"}},
            "scaling_config": {"session_redis": {"address": "redis:6379"}},
            "mutating_webhooks": [{"name": "a", "url": "https://hook.example"}],
            "validating_webhooks": [{"name": "b", "url": "https://hook.example"}],
            "authz_config": {"version": "1.0", "type": "cedarv1", "cedar": {"policies": ["permit(principal, action, resource);"]}},
            "aws_sts_config": {"region": "eu-central-1", "service": "aws-mcp"},
            "header_forward": {"add_plaintext_headers": {"X-Tenant": "bees"}},
            "additional_middleware_configs": [{"type": "obo", "parameters": {"tokenUrl": "https://issuer.example/token"}}]
        }"#;
        assert_eq!(measured(&everything), written(document));
    }

    #[test]
    fn what_cannot_stand_beside_everything_else_has_the_operators_order() {
        let others = Layer::chain(&[Layer::BearerToken, Layer::Pdp, Layer::LocalRateLimit, Layer::StripCredentials]);
        let document = r#"{
            "transport": "streamable-http",
            "remote_url": "https://hive.example/mcp",
            "embedded_auth_server_config": {"issuer": "https://issuer.example", "disable_upstream_token_injection": true},
            "rate_limit_config": {"shared": {"maxTokens": 1, "refillPeriod": "1s"}},
            "authz_config": {"version": "1.0", "type": "httpv1", "pdp": {"http": {"url": "https://pdp.example"}, "claim_mapping": "standard"}},
            "remote_auth_config": {"bearer_token": "honey"}
        }"#;
        assert_eq!(measured(&others), written(document));
        assert_eq!(others.last(), Some(&Layer::BearerToken));
    }
}
