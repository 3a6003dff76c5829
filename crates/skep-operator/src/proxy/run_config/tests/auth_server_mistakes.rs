//! What is said about auth servers that do not go with their workload.

use serde_json::{Value, json};

use super::super::{AuthServerReference, BuildError};
use super::{Case, FROM_SERVER, create, error, found, proxy, server};

const RESOURCE: &str = "https://weather.example.com/mcp";

/// A workload whose auth server comes from `member` and is changed by `change`.
fn with_auth_server(member: &str, change: &Value) -> Value {
    let login = json!({
        "name": "login", "type": "oidc", "oidcConfig": { "issuerUrl": "https://login.example.com", "clientId": "skep" },
    });
    let mut auth_server = json!({ "issuer": "https://weather.example.com", "upstreamProviders": [login] });
    json_patch::merge(&mut auth_server, change);
    let spec = json!({
        member: { "name": "c" },
        "oidcConfigRef": { "name": "c", "audience": RESOURCE, "resourceUrl": RESOURCE, "scopes": ["openid"] },
    });
    let case = found(
        server(&spec),
        if member == "authServerRef" { "authServer" } else { "externalAuth" },
        &json!({ "type": "embeddedAuthServer", "embeddedAuthServer": auth_server }),
    );
    found(case, "oidc", &json!({ "type": "inline", "inline": { "issuer": "https://weather.example.com" } }))
}

/// The violation, and which condition tells it.
fn terminal(case: &Value) -> (AuthServerReference, String) {
    match error(case) {
        BuildError::EmbeddedAuthServer { reference, violation } => (reference, violation),
        other => panic!("{other:?}"),
    }
}

#[test]
fn auth_trap_76_an_audience_that_is_not_the_resource_is_told_by_the_reference_to_its_auth_server() {
    let audience = json!({ "object": { "spec": { "oidcConfigRef": { "audience": "weather" } } } });
    let mismatch = format!(
        "oidcConfigRef.audience \"weather\" must match resourceUrl \"{RESOURCE}\" when an embedded auth server is \
         active; set audience to \"{RESOURCE}\" or set resourceUrl to match audience"
    );
    let open = json!({ "object": { "spec": { "oidcConfigRef": null } } });
    let required = "OIDC config is required for embedded auth server: OIDCConfigRef must be set on the MCPServer";
    for (member, reference) in [
        ("authServerRef", AuthServerReference::AuthServerRef),
        ("externalAuthConfigRef", AuthServerReference::ExternalAuthConfigRef),
    ] {
        for (change, violation) in [(&audience, mismatch.as_str()), (&open, required)] {
            let mut case = with_auth_server(member, &json!({}));
            assert!(Case::read(&case).build().is_ok());
            json_patch::merge(&mut case, change);
            assert_eq!(terminal(&case), (reference, violation.to_owned()));
            assert_eq!(error(&case).to_string(), violation, "nothing is put in front of it");
        }
    }
}

#[test]
fn two_auth_servers_are_a_conflict() {
    let mut case = with_auth_server("authServerRef", &json!({}));
    json_patch::merge(&mut case, &with_auth_server("externalAuthConfigRef", &json!({})));
    let expected = "conflict: both authServerRef and externalAuthConfigRef reference an embedded auth server; use \
                    authServerRef for the embedded auth server and externalAuthConfigRef for outgoing auth only";
    assert_eq!(create(&case), format!("{FROM_SERVER}{expected}"));
}

#[test]
fn auth_trap_19_an_auth_server_that_strips_tokens_leaves_none_to_exchange() {
    let strips = json!({ "disableUpstreamTokenInjection": true });
    let exchange = json!({ "type": "tokenExchange", "tokenExchange": { "tokenUrl": "https://t", "audience": "a" } });
    let mut case = with_auth_server("authServerRef", &strips);
    case["object"]["spec"]["externalAuthConfigRef"] = json!({ "name": "c" });
    let said = create(&found(case, "externalAuth", &exchange));
    let expected = "failed to populate middleware configs: disableUpstreamTokenInjection cannot be combined with token \
                    exchange: it removes the token that token exchange starts from; remove one of the two";
    assert_eq!(said, format!("{FROM_SERVER}{expected}"));

    let act = json!({ "type": "obo", "obo": { "tenantId": "t" } });
    let mut case = with_auth_server("authServerRef", &strips);
    case["object"]["spec"]["externalAuthConfigRef"] = json!({ "name": "c" });
    let said = create(&found(case, "externalAuth", &act));
    assert!(said.contains("cannot be combined with on-behalf-of"), "{said}");

    let sign = json!({ "type": "awsSts", "awsSts": { "region": "eu-central-1" } });
    let resource = "http://mcp-github-remote-proxy.tools.svc.cluster.local:8080";
    let mut case = proxy(&json!({
        "authServerRef": { "name": "c" }, "externalAuthConfigRef": { "name": "c" },
        "oidcConfigRef": { "name": "c", "audience": resource },
    }));
    case["resolved"] = with_auth_server("authServerRef", &strips)["resolved"].clone();
    let said = create(&found(case, "externalAuth", &sign));
    assert!(said.contains("cannot be combined with AWS STS"), "{said}");
}

#[test]
fn whoever_acts_for_others_names_the_provider_that_the_auth_server_has() {
    let acting = |provider: &str| {
        let act = json!({ "type": "obo", "obo": { "tenantId": "t", "subjectTokenProviderName": provider } });
        let mut case = with_auth_server("authServerRef", &json!({}));
        case["object"]["spec"]["externalAuthConfigRef"] = json!({ "name": "c" });
        found(case, "externalAuth", &act)
    };
    assert!(Case::read(&acting("login")).build().is_ok());
    let expected = "obo.subjectTokenProviderName \"hub\" is no provider of the embedded auth server, which has \
                    \"login\"; name that one, or remove it, and the token of the caller is exchanged";
    assert_eq!(create(&acting("hub")), format!("{FROM_SERVER}{expected}"));
}

/// Each change of a good auth server, and what is said about it.
fn all_said(changes: &[(Value, &str)]) {
    for (change, cause) in changes {
        let (reference, violation) = terminal(&with_auth_server("authServerRef", change));
        assert_eq!(reference, AuthServerReference::AuthServerRef);
        assert_eq!(violation, format!("failed to build embedded auth server config: {cause}"));
    }
}

#[test]
fn identity_providers_that_cannot_be_reached() {
    let upstream = |provider: Value| json!({ "upstreamProviders": [provider] });
    all_said(&[
        (json!({ "upstreamProviders": [] }), "upstreamProviders must have at least one identity provider"),
        (
            upstream(json!({ "name": "hub", "type": "oidc" })),
            "upstreamProviders[0]: type must be 'oidc' or 'oauth2'; oidcConfig must be set when type is 'oidc' and \
             oauth2Config must be set when type is 'oauth2' (and the other must not be set)",
        ),
        (
            json!({ "baselineClientScopes": ["read"] }),
            "baselineClientScopes: scope \"read\" is not among those of oidcConfigRef.scopes: openid",
        ),
    ]);
    let mut empty = with_auth_server("authServerRef", &json!({}));
    empty["resolved"]["authServer"]["spec"]["embeddedAuthServer"] = json!(null);
    let expected = "failed to build embedded auth server config: embeddedAuthServer configuration must be set if and \
                    only if type is 'embeddedAuthServer'";
    assert_eq!(terminal(&empty).1, expected);
}

#[test]
fn stores_that_cannot_be_used() {
    let redis = |change: Value| {
        let mut settings = json!({ "aclUserConfig": { "passwordSecretRef": { "name": "s", "key": "k" } } });
        json_patch::merge(&mut settings, &change);
        json!({ "storage": { "type": "redis", "redis": settings } })
    };
    let sentinels = json!({ "masterName": "m" });
    all_said(&[
        (json!({ "storage": { "type": "redis" } }), "storage.redis must be set when storage.type is redis"),
        (redis(json!({})), "storage.redis: exactly one of addr or sentinelConfig must be set"),
        (
            redis(json!({ "addr": "r:1", "sentinelConfig": sentinels })),
            "storage.redis: exactly one of addr or sentinelConfig must be set",
        ),
        (
            redis(json!({ "sentinelConfig": sentinels })),
            "storage.redis.sentinelConfig: sentinelAddrs or sentinelService must be set",
        ),
        (
            redis(json!({ "aclUserConfig": { "passwordSecretRef": { "name": "" } }, "addr": "r:1" })),
            "storage.redis.aclUserConfig.passwordSecretRef must name a Secret and a key",
        ),
    ]);
}

#[test]
fn clients_and_issuers_that_the_workload_does_not_cover() {
    let clients = |changes: &[Value]| {
        let client = |change: &Value| {
            let mut client = json!({
                "clientId": "a", "clientSecretRef": { "name": "s", "key": "k" }, "scopes": ["openid"],
                "audiences": [RESOURCE],
            });
            json_patch::merge(&mut client, change);
            client
        };
        json!({ "delegateClients": changes.iter().map(client).collect::<Vec<_>>() })
    };
    let grant = |accepted: &str, resource: &str| {
        let bindings = json!([{ "subject": "s", "allowedResources": [resource] }]);
        let grant = json!({ "maxAssertionAge": "5m", "acceptedAudiences": [accepted], "subjectBindings": bindings });
        json!({ "trustedIssuers": [{ "issuerUrl": "https://ci", "jwtBearerGrant": grant }] })
    };
    all_said(&[
        (
            clients(&[json!({ "scopes": ["read"] })]),
            "delegateClients[0].scopes: scope \"read\" is not among those of oidcConfigRef.scopes: openid",
        ),
        (
            clients(&[json!({ "audiences": ["https://x"] })]),
            "delegateClients[0].audiences: \"https://x\" is not the resource that tokens are issued for; use \
             \"https://weather.example.com/mcp\"",
        ),
        (clients(&[json!({}), json!({})]), "delegateClients[1]: clientId \"a\" is taken"),
        (
            grant("https://token", "https://x"),
            "trustedIssuers[0].jwtBearerGrant.subjectBindings: \"https://x\" is not the resource that tokens are issued \
             for; use \"https://weather.example.com/mcp\"",
        ),
        (
            grant(RESOURCE, RESOURCE),
            "trustedIssuers[0].jwtBearerGrant.acceptedAudiences: \"https://weather.example.com/mcp\" is the resource \
             that tokens are issued for; assertions need an audience of their own",
        ),
    ]);
}
