//! The page about RunConfigs tells every member that counts, none that does not exist, and an example that is accepted.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use skep_api::config::run_config::middleware::{
    AuditParameters, AuthParameters, AuthorizationParameters, AwsStsParameters, BodyLimitParameters,
    HeaderForwardParameters, OriginParameters, RateLimitParameters, TelemetryParameters, TokenExchangeParameters,
    ToolFilterParameters, WebhookParameters,
};
use skep_api::config::run_config::{
    AuditConfig, AuthzConfig, AwsStsConfig, CedarOptions, HeaderForwardConfig, HttpPdpOptions, MiddlewareConfig,
    MiddlewareType, OidcConfig, PdpContext, PdpEndpoint, RateLimitConfig, RoleMapping, RunConfig, SessionRedis,
    TelemetryConfig, TokenBucket, TokenExchangeConfig, ToolAnnotations, ToolOverride, ToolRateLimit, WebhookConfig,
    WebhookTls,
};
use skep_api::config::vmcp::outgoing_strategies::Obo;

use super::read;
use crate::proxy::chain;

/// The parts of the page, by their headings, and the members that each has to tell.
const PARTS: [(&str, &[&str]); 20] = [
    ("oidc_config", OidcConfig::MEMBERS),
    ("authz_config", AuthzConfig::MEMBERS),
    ("authz_config.cedar", CedarOptions::MEMBERS),
    ("authz_config.pdp", HttpPdpOptions::MEMBERS),
    ("authz_config.pdp.http", PdpEndpoint::MEMBERS),
    ("authz_config.pdp.context", PdpContext::MEMBERS),
    ("tools_override.NAME", ToolOverride::MEMBERS),
    ("tools_override.NAME.annotations", ToolAnnotations::MEMBERS),
    ("mutating_webhooks[], validating_webhooks[]", WebhookConfig::MEMBERS),
    ("mutating_webhooks[].tls_config, validating_webhooks[].tls_config", WebhookTls::MEMBERS),
    ("rate_limit_config", RateLimitConfig::MEMBERS),
    ("rate_limit_config.tools[]", ToolRateLimit::MEMBERS),
    ("rate_limit_config.shared, rate_limit_config.perUser", TokenBucket::MEMBERS),
    ("audit_config", AuditConfig::MEMBERS),
    ("telemetry_config", TelemetryConfig::MEMBERS),
    ("token_exchange_config", TokenExchangeConfig::MEMBERS),
    ("aws_sts_config", AwsStsConfig::MEMBERS),
    ("aws_sts_config.role_mappings[]", RoleMapping::MEMBERS),
    ("header_forward", HeaderForwardConfig::MEMBERS),
    ("scaling_config.session_redis", SessionRedis::MEMBERS),
];

/// Steps, and what their parameters may have.
const STEPS: [(MiddlewareType, &[&str]); 20] = [
    (MiddlewareType::BodyLimit, BodyLimitParameters::MEMBERS),
    (MiddlewareType::Origin, OriginParameters::MEMBERS),
    (MiddlewareType::Audit, AuditParameters::MEMBERS),
    (MiddlewareType::Auth, AuthParameters::MEMBERS),
    (MiddlewareType::StripAuth, &[]),
    (MiddlewareType::UpstreamSwap, &[]),
    (MiddlewareType::TokenExchange, TokenExchangeParameters::MEMBERS),
    (MiddlewareType::ToolFilter, ToolFilterParameters::MEMBERS),
    (MiddlewareType::ToolCallFilter, ToolFilterParameters::MEMBERS),
    (MiddlewareType::McpParser, &[]),
    (MiddlewareType::Telemetry, TelemetryParameters::MEMBERS),
    (MiddlewareType::RateLimit, RateLimitParameters::MEMBERS),
    (MiddlewareType::MutatingWebhook, WebhookParameters::MEMBERS),
    (MiddlewareType::ValidatingWebhook, WebhookParameters::MEMBERS),
    (MiddlewareType::UsageMetrics, &[]),
    (MiddlewareType::Authorization, AuthorizationParameters::MEMBERS),
    (MiddlewareType::AwsSts, AwsStsParameters::MEMBERS),
    (MiddlewareType::HeaderForward, HeaderForwardParameters::MEMBERS),
    (MiddlewareType::Obo, Obo::MEMBERS),
    (MiddlewareType::Recovery, &[]),
];

fn page() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/runconfig.md");
    fs::read_to_string(path).unwrap()
}

/// What is below a heading, up to the next one.
fn part<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let is_it = |line: &&str| line.starts_with('#') && line.trim_start_matches(['#', ' ']).replace('`', "") == heading;
    let lines: Vec<&str> = page.lines().skip_while(|line| !is_it(line)).collect();
    assert!(!lines.is_empty(), "there is no heading {heading}");
    lines.into_iter().skip(1).take_while(|line| !line.starts_with('#')).collect()
}

/// The names that begin the rows of tables.
fn told<'a>(lines: &[&'a str]) -> BTreeSet<&'a str> {
    lines.iter().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

fn set(names: &[&'static str]) -> BTreeSet<&'static str> {
    names.iter().copied().collect()
}

#[test]
fn the_page_tells_the_members_that_there_are() {
    let page = page();
    for (heading, members) in PARTS {
        assert_eq!(told(&part(&page, heading)), set(members), "{heading}");
    }
    let tops = [
        "Listening and sessions",
        "What stands before the server",
        "What the server gets",
        "What is refused, or counts for nothing",
    ];
    let tops: Vec<&str> = tops.into_iter().flat_map(|heading| part(&page, heading)).collect();
    assert_eq!(told(&tops), set(RunConfig::MEMBERS));
    assert_eq!(set(&["type", "parameters"]), set(MiddlewareConfig::MEMBERS));
    let steps = part(&page, "middleware_configs[]");
    for (step, members) in STEPS {
        let begin = format!("| `{step}` |");
        let row = steps.iter().find(|line| line.starts_with(&begin)).unwrap_or_else(|| panic!("{step}"));
        let named: BTreeSet<&str> = row.split('`').skip(3).step_by(2).collect();
        assert_eq!(named, set(members), "{step}");
    }
    assert_eq!(STEPS.map(|(step, _)| step.to_string()).to_vec(), MiddlewareType::KNOWN);
}

#[tokio::test]
async fn the_example_of_the_page_is_a_chain() {
    let page = page();
    let example = page.split("\n```json\n").nth(1).unwrap().split("\n```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runconfig.json");
    fs::write(&file, example).unwrap();
    let config = read(&file, Some("https://mcp.example.com/mcp")).unwrap();
    let chain = chain::build(&config, &|name| name.starts_with("TOOLHIVE_SECRET_").then(|| "hunter2".to_owned())).await;
    let chain = format!("{:?}", chain.unwrap());
    for layer in ["Audit", "Oidc", "TokenExchange", "ToolLists", "Telemetry", "RateLimit", "Change", "Refuse", "Cedar"]
    {
        assert!(chain.contains(layer), "{layer}: {chain}");
    }
    assert!(chain.contains("x-tenant") && !chain.contains("hunter2"), "{chain}");
    // Nothing of it is there by chance: any name that is misspelled is refused.
    for line in example.lines() {
        let Some((name, _)) = line.trim().strip_prefix('"').and_then(|rest| rest.split_once("\":")) else { continue };
        if ["X-Tenant", "X-Api-Key", "deployment.environment.name", "read_file"].contains(&name) {
            continue;
        }
        fs::write(&file, example.replacen(line, &line.replacen(name, &format!("{name}_"), 1), 1)).unwrap();
        let said = read(&file, Some("https://mcp.example.com/mcp")).map(drop).unwrap_err().to_string();
        assert!(said.contains("no such member") || said.contains("expected"), "{name}: {said}");
    }
}
