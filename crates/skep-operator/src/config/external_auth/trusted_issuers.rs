//! Issuers elsewhere whose tokens the embedded authorization server accepts.

use std::collections::BTreeSet;

use skep_api::kinds::auth_server::EmbeddedAuthServer;
use skep_api::kinds::auth_server::trusted_issuer::{JwtBearerGrant, TrustedIssuer};

use crate::config::expression;

pub(super) fn check(server: &EmbeddedAuthServer) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for (index, issuer) in server.trusted_issuers.iter().enumerate() {
        if issuer.issuer_url == server.issuer {
            return Err(format!("[{index}].issuerUrl {:?} is this server's own issuer", issuer.issuer_url));
        }
        if !known.insert(&issuer.issuer_url) {
            return Err(format!("[{index}].issuerUrl {:?} is that of another entry", issuer.issuer_url));
        }
        check_issuer(issuer).map_err(|complaint| format!("[{index}].{complaint}"))?;
    }
    Ok(())
}

fn check_issuer(issuer: &TrustedIssuer) -> Result<(), String> {
    if issuer.issuer_url.is_empty() {
        return Err("issuerUrl must not be empty".to_owned());
    }
    if let Some(matcher) = issuer.actor_matcher.as_ref().filter(|matcher| !matcher.is_empty()) {
        expression::check(matcher).map_err(|complaint| format!("actorMatcher {complaint}"))?;
    }
    match &issuer.jwt_bearer_grant {
        Some(grant) => check_grant(grant).map_err(|complaint| format!("jwtBearerGrant.{complaint}")),
        None => Ok(()),
    }
}

fn check_grant(grant: &JwtBearerGrant) -> Result<(), String> {
    let age = grant.max_assertion_age.parse().map_err(|error| format!("maxAssertionAge: {error}"))?;
    if age.is_zero() {
        return Err("maxAssertionAge must be greater than zero".to_owned());
    }
    if grant.subject_bindings.is_empty() {
        return Err("subjectBindings must have at least one entry".to_owned());
    }
    for (index, binding) in grant.subject_bindings.iter().enumerate() {
        if binding.subject.is_empty() || binding.subject.contains('*') {
            return Err(format!("subjectBindings[{index}].subject must be a name without wildcards"));
        }
        if binding.allowed_resources.is_empty() {
            return Err(format!("subjectBindings[{index}].allowedResources must have at least one entry"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::kinds::MCPExternalAuthConfig;

    use super::super::auth_server::tests::with;
    use crate::config::{complaint_about, judge};

    fn trusted(extra: &Value) -> Value {
        let mut issuer =
            json!({"issuerUrl": "https://other.example", "expectedAudience": "a", "allowedDelegateClients": ["d"]});
        issuer.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        with(&json!({"trustedIssuers": [issuer]}))
    }

    fn grant(age: &str, bindings: &Value) -> Value {
        with(&json!({"trustedIssuers": [{"issuerUrl": "https://other.example",
            "jwtBearerGrant": {"maxAssertionAge": age, "subjectBindings": bindings}}]}))
    }

    #[test]
    fn issuers_are_judged() {
        let entry = json!({"issuerUrl": "https://o", "expectedAudience": "a", "allowedDelegateClients": ["d"]});
        judge::<MCPExternalAuthConfig>([
            (trusted(&json!({})), ""),
            (trusted(&json!({"issuerUrl": "https://own.example/"})), ""),
            (
                trusted(&json!({"issuerUrl": "https://own.example"})),
                "trustedIssuers: [0].issuerUrl \"https://own.example\" is this server's own issuer",
            ),
            (
                with(&json!({"trustedIssuers": [entry, entry]})),
                "trustedIssuers: [1].issuerUrl \"https://o\" is that of another entry",
            ),
            (trusted(&json!({"issuerUrl": ""})), "trustedIssuers: [0].issuerUrl must not be empty"),
            (trusted(&json!({"actorMatcher": "claims.azp == 'x'"})), ""),
        ]);
        let told = complaint_about::<MCPExternalAuthConfig>(&trusted(&json!({"actorMatcher": "claims.azp =="})));
        assert!(told.starts_with("trustedIssuers: [0].actorMatcher is not a CEL expression: "), "{told}");
    }

    #[test]
    fn the_rules_of_the_schema_are_asked_again() {
        let at = |rule: &str| format!("embeddedAuthServer.trustedIssuers[0]: {rule}");
        for (extra, rule) in [
            (
                json!({"allowedDelegateClients": ["*", "d"]}),
                "allowedDelegateClients must not combine the wildcard \"*\" with specific client IDs",
            ),
            (
                json!({"allowedDelegateClients": ["*"], "allowMayAct": true}),
                "allowMayAct must not be enabled when allowedDelegateClients contains the wildcard \"*\"",
            ),
            (
                json!({"actorClaim": "sub"}),
                "actorClaim must name a readable claim; use client_id or a non-reserved claim such as azp, appid, or cid",
            ),
            (json!({"allowPrivateIPs": true}), "allowPrivateIPs requires jwksUrl to be set explicitly"),
            (
                json!({"expectedAudience": ""}),
                "expectedAudience is required unless jwtBearerGrant is configured without actorClaim, actorMatcher, \
                 allowMayAct, or allowedActors",
            ),
            (
                json!({"allowedDelegateClients": []}),
                "allowedDelegateClients is required when expectedAudience, actorClaim, actorMatcher, or allowMayAct is set",
            ),
        ] {
            assert_eq!(complaint_about::<MCPExternalAuthConfig>(&trusted(&extra)), at(rule));
        }
    }

    #[test]
    fn grants_are_judged() {
        let binding = |subject: &str| json!({"subject": subject, "allowedResources": ["https://r"]});
        let where_ = "embeddedAuthServer.trustedIssuers[0].jwtBearerGrant";
        judge::<MCPExternalAuthConfig>([
            (grant("5m", &json!([binding("a"), binding("b")])), ""),
            (
                grant("5m", &json!([])),
                "trustedIssuers: [0].jwtBearerGrant.subjectBindings must have at least one entry",
            ),
            (
                grant("5m", &json!([binding("a*")])),
                "trustedIssuers: [0].jwtBearerGrant.subjectBindings[0].subject must be a name without wildcards",
            ),
            (
                grant("5m", &json!([{"subject": "a", "allowedResources": []}])),
                "trustedIssuers: [0].jwtBearerGrant.subjectBindings[0].allowedResources must have at least one entry",
            ),
        ]);
        for (spec, expected) in [
            (grant("0s", &json!([binding("a")])), "maxAssertionAge must be greater than zero"),
            (grant("5m", &json!([binding("a"), binding("a")])), "subjectBindings must not contain duplicate subjects"),
        ] {
            assert_eq!(complaint_about::<MCPExternalAuthConfig>(&spec), format!("{where_}: {expected}"));
        }
        let told = complaint_about::<MCPExternalAuthConfig>(&grant("soon", &json!([binding("a")])));
        assert!(told.contains("jwtBearerGrant"), "{told}");
    }
}
