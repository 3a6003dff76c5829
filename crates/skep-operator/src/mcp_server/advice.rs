//! Conditions that only an MCPServer has, from its spec alone.

use skep_api::conditions::{Statement, reasons, types};
use skep_api::kinds::mcp_server::MCPServerSpec;
use skep_api::kinds::transport::ServerTransport;

/// A stdio server has one proxy, whatever the spec says.
pub fn stdio_cap(spec: &MCPServerSpec) -> Statement {
    let type_ = types::STDIO_REPLICA_CAPPED;
    if spec.transport == ServerTransport::Stdio && spec.replicas.is_some_and(|replicas| replicas > 1) {
        let text = "stdio transport requires exactly 1 replica; deployment will use 1 regardless of spec.replicas";
        return Statement::holds(type_, reasons::STDIO_TRANSPORT_CAP_AT_1, text);
    }
    Statement::fails(type_, reasons::STDIO_REPLICA_CAP_NOT_ACTIVE, "stdio replica cap is not active")
}

/// Limits per user need to know who calls.
pub fn rate_limit(spec: &MCPServerSpec) -> Statement {
    let type_ = types::RATE_LIMIT_CONFIG_VALID;
    let Some(limits) = &spec.rate_limiting else {
        return Statement::holds(type_, reasons::RATE_LIMIT_NOT_APPLICABLE, "rate limiting is not configured");
    };
    let per_user = limits.per_user.is_some() || limits.tools.iter().any(|tool| tool.per_user.is_some());
    if per_user && spec.oidc_config_ref.is_none() && spec.external_auth_config_ref.is_none() {
        let text =
            "perUser rate limiting requires authentication to be enabled (oidcConfigRef or externalAuthConfigRef)";
        return Statement::fails(type_, reasons::PER_USER_REQUIRES_AUTH, text);
    }
    Statement::holds(type_, reasons::RATE_LIMIT_CONFIG_VALID, "rate limit configuration is valid")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(spec: Value) -> MCPServerSpec {
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn stdio_servers_are_capped() {
        for (given, expected) in [
            (json!({"image": "i", "replicas": 2}), reasons::STDIO_TRANSPORT_CAP_AT_1),
            (json!({"image": "i", "replicas": 1}), reasons::STDIO_REPLICA_CAP_NOT_ACTIVE),
            (json!({"image": "i", "transport": "sse", "replicas": 2}), reasons::STDIO_REPLICA_CAP_NOT_ACTIVE),
            (json!({"image": "i"}), reasons::STDIO_REPLICA_CAP_NOT_ACTIVE),
        ] {
            assert_eq!(stdio_cap(&spec(given.clone())).reason, expected, "{given}");
        }
    }

    #[test]
    fn limits_per_user_need_users() {
        let bucket = json!({"maxTokens": 1, "refillPeriod": "1m"});
        for (given, expected) in [
            (json!({"image": "i"}), reasons::RATE_LIMIT_NOT_APPLICABLE),
            (json!({"image": "i", "rateLimiting": {"shared": bucket}}), reasons::RATE_LIMIT_CONFIG_VALID),
            (json!({"image": "i", "rateLimiting": {"perUser": bucket}}), reasons::PER_USER_REQUIRES_AUTH),
            (
                json!({"image": "i", "rateLimiting": {"tools": [{"name": "t", "perUser": bucket}]}}),
                reasons::PER_USER_REQUIRES_AUTH,
            ),
            (
                json!({"image": "i", "rateLimiting": {"perUser": bucket}, "externalAuthConfigRef": {"name": "e"}}),
                reasons::RATE_LIMIT_CONFIG_VALID,
            ),
        ] {
            assert_eq!(rate_limit(&spec(given.clone())).reason, expected, "{given}");
        }
    }
}
