//! The texts with known values: 30 §2.1, §10.1, §12.1, §12.4, §16.1; 50 §2.3, §3.1, §3.15.

use skep_api::config::document::read;
use skep_api::config::run_config::{
    AuthzType, ClaimMapping, FailurePolicy, HeaderStrategy, MiddlewareType, ProxyMode, RunConfig, StorageType,
    Transport, UpstreamType,
};

macro_rules! spelled {
    ($($type:ident::$variant:ident = $text:literal,)+) => {
        $(assert_eq!($type::$variant.as_str(), $text, stringify!($type::$variant));)+
        $(assert_eq!($type::from($text), $type::$variant);)+
    };
}

#[test]
fn words_are_spelled_as_the_specification_does() {
    spelled! {
        Transport::Stdio = "stdio",
        Transport::Sse = "sse",
        Transport::StreamableHttp = "streamable-http",
        ProxyMode::Sse = "sse",
        ProxyMode::StreamableHttp = "streamable-http",
        AuthzType::Cedar = "cedarv1",
        AuthzType::Http = "httpv1",
        ClaimMapping::Mpe = "mpe",
        ClaimMapping::Standard = "standard",
        FailurePolicy::Fail = "fail",
        FailurePolicy::Ignore = "ignore",
        HeaderStrategy::Custom = "custom",
        HeaderStrategy::Replace = "replace",
        StorageType::Memory = "memory",
        StorageType::Redis = "redis",
        UpstreamType::OAuth2 = "oauth2",
        UpstreamType::Oidc = "oidc",
    }
}

#[test]
fn steps_are_spelled_as_the_specification_does() {
    spelled! {
        MiddlewareType::BodyLimit = "bodylimit",
        MiddlewareType::Origin = "origin",
        MiddlewareType::Audit = "audit",
        MiddlewareType::Auth = "auth",
        MiddlewareType::StripAuth = "strip-auth",
        MiddlewareType::UpstreamSwap = "upstreamswap",
        MiddlewareType::TokenExchange = "tokenexchange",
        MiddlewareType::ToolFilter = "tool-filter",
        MiddlewareType::ToolCallFilter = "tool-call-filter",
        MiddlewareType::McpParser = "mcp-parser",
        MiddlewareType::Telemetry = "telemetry",
        MiddlewareType::RateLimit = "ratelimit",
        MiddlewareType::MutatingWebhook = "mutating-webhook",
        MiddlewareType::ValidatingWebhook = "validating-webhook",
        MiddlewareType::UsageMetrics = "usagemetrics",
        MiddlewareType::Authorization = "authorization",
        MiddlewareType::AwsSts = "awssts",
        MiddlewareType::HeaderForward = "header-forward",
        MiddlewareType::Obo = "obo",
        MiddlewareType::Recovery = "recovery",
    }
}

/// Every word of the documents is a known one, but for a step that is foreign on purpose.
#[test]
fn every_word_of_the_documents_is_known() {
    for (name, document) in super::documents() {
        let text = format!("{:?}", read::<RunConfig>(document).unwrap());
        for rest in text.split("Other(\"").skip(1) {
            let word = rest.split('"').next().unwrap();
            assert!(["", "something-else"].contains(&word), "{name}: {word}");
        }
    }
}
