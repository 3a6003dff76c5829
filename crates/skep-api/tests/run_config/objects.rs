//! Every object of a RunConfig: what it looks like when nothing is set, and where the documents have its members.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use skep_api::config::run_config::middleware::*;
use skep_api::config::run_config::*;

struct Object {
    name: &'static str,
    /// The declared members.
    members: &'static [&'static str],
    /// As it is written when nothing is set.
    written: Value,
    /// As it must be written then: what is always present, with its zero value, and nothing else.
    expected: Value,
    /// Where the documents have objects of this type, see [`at`].
    places: &'static [&'static str],
}

macro_rules! objects {
    ($($type:ident $expected:tt at [$($place:literal),+ $(,)?];)+) => {
        vec![$(Object {
            name: stringify!($type),
            members: $type::MEMBERS,
            written: serde_json::to_value($type::default()).unwrap(),
            expected: json!($expected),
            places: &[$($place),+],
        }),+]
    };
}

/// 30 §2, §9.7, §10.1, §12–§16; 10 §8.3.
fn objects_of_the_proxy() -> Vec<Object> {
    objects! {
        RunConfig {
            "schema_version": "", "image": "", "name": "", "transport": "", "host": "", "port": 0,
            "permission_profile": null,
        } at [""];
        ToolOverride {} at ["tools_override[]"];
        ToolAnnotations {} at ["tools_override[].annotations"];
        IgnoreConfig { "LoadGlobal": false, "PrintOverlays": false } at ["ignore_config"];
        ScalingConfig {} at ["scaling_config"];
        SessionRedis {} at ["scaling_config.session_redis"];
        HeaderForwardConfig {} at ["header_forward"];
        PermissionProfile {} at ["permission_profile"];
        NetworkPermissions {} at ["permission_profile.network"];
        OutboundPermissions {} at ["permission_profile.network.outbound"];
        InboundPermissions {} at ["permission_profile.network.inbound"];
        AuditConfig {} at ["audit_config"];
        TelemetryConfig { "tracingEnabled": false, "metricsEnabled": false, "useLegacyAttributes": false }
            at ["telemetry_config"];
        RateLimitConfig {} at ["rate_limit_config"];
        ToolRateLimit { "name": "" } at ["rate_limit_config.tools[]"];
        // No bucket without a period is valid, so what an unset one looks like does not matter.
        TokenBucket { "maxTokens": 0, "refillPeriod": "" } at ["rate_limit_config.shared"];
        WebhookConfig { "name": "", "url": "", "timeout": 0, "failure_policy": "" }
            at ["validating_webhooks[]", "mutating_webhooks[]"];
        WebhookTls {} at ["validating_webhooks[].tls_config", "mutating_webhooks[].tls_config"];
        CedarOptions { "policies": [], "entities_json": "" } at ["authz_config.cedar"];
        HttpPdpOptions { "claim_mapping": "" } at ["authz_config.pdp"];
        PdpEndpoint { "url": "" } at ["authz_config.pdp.http"];
        PdpContext {} at ["authz_config.pdp.context"];
    }
}

/// 30 §10.1; 10 §8.3; 50 §2.3–2.9.
fn objects_of_the_chain() -> Vec<Object> {
    objects! {
        MiddlewareConfig { "type": "", "parameters": null } at ["middleware_configs[]"];
        NoParameters {} at ["middleware_configs[mcp-parser].parameters"];
        BodyLimitParameters { "max_bytes": 0 } at ["middleware_configs[bodylimit].parameters"];
        OriginParameters { "allowed_origins": [] } at ["middleware_configs[origin].parameters"];
        AuditParameters {} at ["middleware_configs[audit].parameters"];
        AuthParameters {} at ["middleware_configs[auth].parameters"];
        UpstreamSwapParameters {} at ["middleware_configs[upstreamswap].parameters"];
        TokenExchangeParameters {} at ["middleware_configs[tokenexchange].parameters"];
        ToolFilterParameters { "filter_tools": null, "tools_override": null }
            at ["middleware_configs[tool-filter].parameters"];
        ToolOverrideParameters { "name": "", "description": "" }
            at ["middleware_configs[tool-filter].parameters.tools_override[]"];
        TelemetryParameters { "config": null, "server_name": "", "transport": "" }
            at ["middleware_configs[telemetry].parameters"];
        RateLimitParameters { "namespace": "", "server_name": "", "config": null }
            at ["middleware_configs[ratelimit].parameters"];
        WebhookParameters { "webhooks": [], "server_name": "", "transport": "" }
            at ["middleware_configs[validating-webhook].parameters"];
        AuthorizationParameters {} at ["middleware_configs[authorization].parameters"];
        AwsStsParameters {} at ["middleware_configs[awssts].parameters"];
        HeaderForwardParameters { "add_headers": {} } at ["middleware_configs[header-forward].parameters"];
    }
}

/// 50 §1.2, §2.3–2.9; 30 §2.1.
fn objects_of_authentication() -> Vec<Object> {
    objects! {
        OidcConfig {
            "Issuer": "", "Audience": "", "JWKSURL": "", "ClientID": "", "ClientSecret": "", "CACertPath": "",
            "AuthTokenFile": "", "AllowPrivateIP": false, "InsecureAllowHTTP": false, "IntrospectionURL": "",
            "ResourceURL": "", "Scopes": null,
        } at ["oidc_config"];
        TokenExchangeConfig { "token_url": "", "client_id": "", "client_secret": "", "audience": "" }
            at ["token_exchange_config"];
        UpstreamSwapConfig {} at ["upstream_swap_config"];
        RemoteAuthConfig {
            "use_pkce": false, "cached_token_expiry": "0001-01-01T00:00:00Z",
            "cached_secret_expiry": "0001-01-01T00:00:00Z",
        } at ["remote_auth_config"];
        AwsStsConfig { "region": "", "service": "" } at ["aws_sts_config"];
        RoleMapping { "role_arn": "" } at ["aws_sts_config.role_mappings[]"];
    }
}

/// 50 §3.1, §3.13–3.15.
fn objects_of_the_authorization_server() -> Vec<Object> {
    objects! {
        EmbeddedAuthServerConfig { "schema_version": "", "issuer": "", "upstreams": null, "allowed_audiences": null }
            at ["embedded_auth_server_config"];
        SigningKeyConfig {} at ["embedded_auth_server_config.signing_key_config"];
        TokenLifespans {} at ["embedded_auth_server_config.token_lifespans"];
        CimdConfig { "enabled": false } at ["embedded_auth_server_config.cimd"];
        DelegateClient {} at ["embedded_auth_server_config.delegate_clients[]"];
        TrustedIssuer { "expected_audience": "" } at ["embedded_auth_server_config.trusted_issuers[]"];
        JwtBearerGrant {} at ["embedded_auth_server_config.trusted_issuers[].jwt_bearer_grant"];
        SubjectBinding {} at ["embedded_auth_server_config.trusted_issuers[].jwt_bearer_grant.subject_bindings[]"];
        AuthServerUpstream {} at ["embedded_auth_server_config.upstreams[]"];
        OidcUpstream {} at ["embedded_auth_server_config.upstreams[].oidc_config"];
        OAuth2Upstream { "authorization_endpoint": "", "token_endpoint": "", "client_id": "" }
            at ["embedded_auth_server_config.upstreams[].oauth2_config"];
        DcrConfig {} at ["embedded_auth_server_config.upstreams[].oauth2_config.dcr_config"];
        TokenResponseMapping {} at ["embedded_auth_server_config.upstreams[].oauth2_config.token_response_mapping"];
        IdentityFromToken {} at ["embedded_auth_server_config.upstreams[].oauth2_config.identity_from_token"];
        UserinfoConfig {} at [
            "embedded_auth_server_config.upstreams[].oauth2_config.userinfo",
            "embedded_auth_server_config.upstreams[].oidc_config.userinfo_override",
        ];
        UserinfoFields {} at [
            "embedded_auth_server_config.upstreams[].oauth2_config.userinfo.field_mapping",
            "embedded_auth_server_config.upstreams[].oidc_config.userinfo_override.field_mapping",
        ];
        AuthServerStorage {} at ["embedded_auth_server_config.storage"];
        AuthServerRedis { "auth_type": "", "key_prefix": "" } at ["embedded_auth_server_config.storage.redis_config"];
        RedisAclUser { "username_env_var": "", "password_env_var": "" }
            at ["embedded_auth_server_config.storage.redis_config.acl_user_config"];
        RedisSentinel {} at ["embedded_auth_server_config.storage.redis_config.sentinel_config"];
        RedisTls {} at [
            "embedded_auth_server_config.storage.redis_config.tls",
            "embedded_auth_server_config.storage.redis_config.sentinel_tls",
        ];
    }
}

fn objects() -> Vec<Object> {
    [objects_of_the_proxy(), objects_of_the_chain(), objects_of_authentication(), objects_of_the_authorization_server()]
        .into_iter()
        .flatten()
        .collect()
}

/// The values at a place such as `a.b[].c`: `[]` stands for every item of a list or map, `[x]` for the items of the
/// type x, and the empty text for the value itself.
fn at<'a>(value: &'a Value, place: &str) -> Vec<&'a Value> {
    let mut values = vec![value];
    for step in place.split_terminator('.') {
        let (member, filter) = step.trim_end_matches(']').split_once('[').unzip();
        values = values.iter().filter_map(|value| value.get(member.unwrap_or(step))).collect();
        if let Some(filter) = filter {
            let items = values.into_iter().flat_map(items);
            values = items.filter(|item| filter.is_empty() || item["type"] == filter).collect();
        }
    }
    values
}

fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

/// All the tests below go through the lists above; a type that is missing there would pass unseen.
#[test]
fn every_object_is_listed() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/run_config");
    let mut declared = BTreeSet::new();
    for entry in fs::read_dir(sources).unwrap() {
        let source = fs::read_to_string(entry.unwrap().path()).unwrap();
        // Only declarations within `object!` are indented.
        let names = source.lines().filter_map(|line| line.strip_prefix("    pub struct "));
        declared.extend(names.map(|name| name.split([' ', '{']).next().unwrap().to_owned()));
    }
    assert_eq!(objects().iter().map(|object| object.name.to_owned()).collect::<BTreeSet<_>>(), declared);
}

#[test]
fn an_object_without_values_has_exactly_the_members_that_are_always_written() {
    for object in objects() {
        assert_eq!(object.written, object.expected, "{}", object.name);
    }
}

/// Together with the tests that no member of the documents is unknown, this finds every misspelled name.
#[test]
fn every_declared_member_is_in_a_document() {
    let documents = super::documents();
    let mut missing = Vec::new();
    for object in objects() {
        let everywhere =
            documents.iter().flat_map(|(_, document)| object.places.iter().map(move |place| (document, place)));
        let found: Vec<_> = everywhere.flat_map(|(document, place)| at(document, place)).collect();
        assert!(!found.is_empty(), "{} is in no document", object.name);
        let is_missing = |member: &&&str| !found.iter().any(|value| value.get(**member).is_some());
        missing.extend(object.members.iter().filter(is_missing).map(|member| format!("{}.{member}", object.name)));
    }
    assert_eq!(missing, Vec::<String>::new());
}
