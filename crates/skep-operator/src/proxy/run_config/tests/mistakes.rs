//! What is said about inputs that nothing can be built from.

use serde_json::{Value, json};

use super::{Case, FROM_SERVER, create, found, proxy, server};

const PERMIT: &str = "permit(principal, action, resource);";
const FROM_PROXY: &str = "failed to create RunConfig from MCPRemoteProxy: ";

#[test]
fn a_reference_is_never_left_out() {
    for (spec, kind) in [
        (json!({ "oidcConfigRef": { "name": "c", "audience": "a" } }), "MCPOIDCConfig"),
        (json!({ "authzConfigRef": { "name": "c" } }), "MCPAuthzConfig"),
        (json!({ "authzConfig": { "configMap": { "name": "c" } } }), "authorization ConfigMap"),
        (json!({ "authServerRef": { "name": "c" } }), "MCPExternalAuthConfig"),
        (json!({ "externalAuthConfigRef": { "name": "c" } }), "MCPExternalAuthConfig"),
        (json!({ "telemetryConfigRef": { "name": "c" } }), "MCPTelemetryConfig"),
        (json!({ "toolConfigRef": { "name": "c" } }), "MCPToolConfig"),
        (json!({ "webhookConfigRef": { "name": "c" } }), "MCPWebhookConfig"),
    ] {
        let expected = format!("{kind} c is not there; create it, or remove the reference to it");
        let said = create(&server(&spec));
        assert!(said.starts_with(FROM_SERVER) && said.ends_with(&expected), "{said}");
        if kind != "MCPWebhookConfig" {
            assert!(create(&proxy(&spec)).starts_with(FROM_PROXY));
        }
    }
}

#[test]
fn certificates_that_cannot_be_mounted() {
    let case = |bundle: Value| {
        let spec = json!({ "oidcConfigRef": { "name": "c", "audience": "a" } });
        let inline = json!({ "issuer": "https://i", "caBundleRef": bundle });
        found(server(&spec), "oidc", &json!({ "type": "inline", "inline": inline }))
    };
    let long = "c".repeat(49);
    let too_long = format!(
        "configMapRef.name \"{long}\" is too long (49 chars); maximum is 48 characters to fit in Kubernetes volume name"
    );
    for (bundle, cause) in [
        (json!({}), "configMapRef must be specified in caBundleRef"),
        (json!({ "configMapRef": { "key": "k" } }), "configMapRef.name must be specified"),
        (json!({ "configMapRef": { "key": "k", "name": long } }), too_long.as_str()),
    ] {
        let expected = format!("{FROM_SERVER}failed to resolve OIDC config from MCPOIDCConfig: {cause}");
        assert_eq!(create(&case(bundle)), expected);
    }
    let fits = json!({ "configMapRef": { "key": "k", "name": "c".repeat(48) } });
    assert!(Case::read(&case(fits)).build().is_ok());
}

/// Each case, and what is said about it.
fn all_said(cases: &[(Value, &str)]) {
    for (case, cause) in cases {
        assert_eq!(create(case), format!("{FROM_SERVER}{cause}"));
    }
}

#[test]
fn policies_that_cannot_be_written_down() {
    let shared = |type_: &str, config: Value| {
        let spec = json!({ "authzConfigRef": { "name": "c" } });
        found(server(&spec), "authz", &json!({ "type": type_, "config": config }))
    };
    let mapped = |document: Value| {
        let mut case = server(&json!({ "authzConfig": { "configMap": { "name": "c" } } }));
        case["resolved"] = json!({ "authzDocument": document });
        case
    };
    all_said(&[
        (
            server(&json!({ "authzConfigRef": { "name": "c" }, "authzConfig": { "configMap": { "name": "c" } } })),
            "authzConfig and authzConfigRef are mutually exclusive; use authzConfigRef to reference a shared \
             MCPAuthzConfig",
        ),
        (
            server(&json!({ "authzConfig": { "type": "inline" } })),
            "authzConfig.inline must be set when type is 'inline'",
        ),
        (
            server(&json!({ "authzConfig": { "type": "configMap" } })),
            "authzConfig.configMap must be set when type is 'configMap'",
        ),
        (shared("opa", json!({})), "type \"opa\" is not a known authorizer; use cedarv1 or httpv1"),
        (shared("cedarv1", json!({ "policies": [] })), "cedar.policies must have at least one policy"),
        (
            shared("cedarv1", json!({ "policies": [PERMIT, "permit"] })),
            "cedar.policies[1] is no Cedar policy: unexpected end of input",
        ),
        (shared("cedarv1", json!({ "policies": "p" })), "cedar: policies: expected a list, found a text"),
        (
            shared("cedarv1", json!({ "policies": [PERMIT], "group_entity_type": "Hive::Team" })),
            "cedar.group_entity_type \"Hive::Team\" must be a name of letters, digits and _",
        ),
        (shared("httpv1", json!({ "claim_mapping": "mpe" })), "pdp.http must be set"),
        (
            shared("httpv1", json!({ "claim_mapping": "mpe", "http": { "url": "ftp://pdp" } })),
            "pdp.http.url \"ftp://pdp\" must use https, not ftp",
        ),
        (
            mapped(json!({ "version": "1.0", "type": "httpv1", "pdp": { "http": { "url": "http://pdp" } } })),
            "authorization ConfigMap \"c\" is invalid: pdp.claim_mapping \"\" must be mpe or standard",
        ),
        (mapped(json!({ "type": "cedarv1" })), "authorization ConfigMap \"c\" is invalid: version must be set"),
        (
            mapped(json!({ "version": "1.0" })),
            "authorization ConfigMap \"c\" is invalid: type \"\" is not one of cedarv1 and httpv1",
        ),
    ]);
}

#[test]
fn credentials_that_cannot_be_written_down() {
    let outgoing =
        |spec: Value| found(server(&json!({ "externalAuthConfigRef": { "name": "c" } })), "externalAuth", &spec);
    let exchange = json!({ "tokenUrl": "https://t", "audience": "a", "subjectTokenType": "saml2" });
    all_said(&[
        (
            outgoing(json!({ "type": "tokenExchange" })),
            "tokenExchange configuration must be set if and only if type is 'tokenExchange'",
        ),
        (
            outgoing(json!({ "type": "tokenExchange", "tokenExchange": exchange })),
            "tokenExchange.subjectTokenType \"saml2\" is not one of access_token, id_token, jwt",
        ),
        (
            outgoing(
                json!({ "type": "tokenExchange", "tokenExchange": { "tokenUrl": "login/token", "audience": "a" } }),
            ),
            "tokenExchange.tokenUrl \"login/token\" is not a URL: relative URL without a base",
        ),
        (
            outgoing(
                json!({ "type": "tokenExchange", "tokenExchange": { "tokenUrl": "http://169.254.169.254/t", "audience": "a" } }),
            ),
            "tokenExchange.tokenUrl \"http://169.254.169.254/t\" is at a link-local or reserved address, which no proxy asks",
        ),
        (
            outgoing(json!({ "type": "obo", "obo": { "authority": "https://169.254.169.254" } })),
            "obo: the token endpoint \"https://169.254.169.254/oauth2/v2.0/token\" is at a link-local or reserved address, \
             which no proxy asks",
        ),
        (
            outgoing(json!({ "type": "obo", "obo": {} })),
            "obo needs authority or tenantId: without them nobody knows where tokens are exchanged; set one of them in \
             the MCPExternalAuthConfig",
        ),
        (
            outgoing(json!({ "type": "obo", "obo": { "tenantId": "t.example", "cacheSkew": "999999h" } })),
            "obo.cacheSkew is longer than 68 years",
        ),
        (
            outgoing(json!({ "type": "obo", "obo": { "tenantId": "t.example", "subjectTokenProviderName": "login" } })),
            "obo.subjectTokenProviderName \"login\" is a provider of an embedded auth server, and there is none; set \
             authServerRef to one with that provider, or remove it, and the token of the caller is exchanged",
        ),
        (
            outgoing(json!({ "type": "awsSts", "awsSts": { "region": "eu-central-1" } })),
            "failed to populate middleware configs: AWS STS middleware requires a remote URL: SigV4 signing is only \
             meaningful for remote MCP servers",
        ),
    ]);
}

#[test]
fn limits_that_cannot_be_written_down() {
    let sessions = json!({ "provider": "redis", "address": "r:1" });
    let limited = |max: i32, period: &str| {
        let shared = json!({ "maxTokens": max, "refillPeriod": period });
        server(&json!({ "rateLimiting": { "tools": [{ "name": "t", "shared": shared }] }, "sessionStorage": sessions }))
    };
    all_said(&[
        (
            limited(1, "soon"),
            "rateLimiting.tools[t].shared.refillPeriod: duration \"soon\" is not a sequence of numbers with units; \
             write it like 90s, 1m30s or 250ms",
        ),
        (limited(1, "0s"), "rateLimiting.tools[t].shared.refillPeriod must be longer than 0"),
        (limited(0, "1s"), "rateLimiting.tools[t].shared.maxTokens must be at least 1"),
        (
            server(&json!({ "rateLimiting": { "shared": { "maxTokens": 1, "refillPeriod": "1s" } } })),
            "rateLimiting needs a Redis server to count in; set sessionStorage with provider redis",
        ),
        (
            server(&json!({ "sessionStorage": { "provider": "redis" } })),
            "sessionStorage.address must be host:port of the Redis server",
        ),
    ]);
}

#[test]
fn other_things_that_cannot_be_written_down() {
    let hooks = |webhook: Value| {
        found(server(&json!({ "webhookConfigRef": { "name": "c" } })), "webhooks", &json!({ "mutating": [webhook] }))
    };
    let key_alone = json!({ "clientKeySecretRef": { "name": "s", "key": "k" } });
    let tool = json!({ "toolsOverride": { "forecast": { "name": "", "annotations": {} } } });
    all_said(&[
        (
            found(server(&json!({ "toolConfigRef": { "name": "c" } })), "tools", &tool),
            "failed to validate run config: tool override for forecast must have either Name or Description set",
        ),
        (
            hooks(json!({ "name": "w", "url": "https://w", "timeout": "-1s" })),
            "mutating webhook[0] \"w\": timeout: duration \"-1s\" is negative",
        ),
        (
            hooks(json!({ "name": "w", "url": "https://w", "tlsConfig": key_alone })),
            "mutating webhook[0] \"w\": tlsConfig.clientCertSecretRef and tlsConfig.clientKeySecretRef must be set \
             together",
        ),
        (
            server(&json!({ "permissionProfile": { "name": "strict" } })),
            "permissionProfile.name \"strict\" is not a builtin profile; use none or network, or set type to configmap",
        ),
        (
            server(&json!({ "permissionProfile": { "type": "configmap", "name": "p" } })),
            "permissionProfile.key must name the key of ConfigMap p that holds the profile",
        ),
    ]);
}
