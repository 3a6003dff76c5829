//! What makes an MCPExternalAuthConfig valid.

mod auth_server;
mod aws_sts;
mod on_behalf_of;
mod trusted_issuers;
mod upstreams;

use std::sync::LazyLock;

use skep_api::conditions::{Statement, reasons, types};
use skep_api::kinds::MCPExternalAuthConfig;
use skep_api::kinds::mcp_external_auth_config::MCPExternalAuthConfigSpec;
use skep_api::names::finalizers;

use super::rules::Rules;
use super::{Complaint, ConfigKind, for_empty};
use crate::header_names;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::of::<MCPExternalAuthConfig>);

impl ConfigKind for MCPExternalAuthConfig {
    const FINALIZER: &'static str = finalizers::MCP_EXTERNAL_AUTH_CONFIG;
    const ADVICE: &'static [&'static str] = &[types::IDENTITY_SYNTHESIZED];

    /// The rules of the schema see to it that the member of the type is there, and no other.
    fn judge(&self) -> Result<(), Complaint> {
        let spec = &self.spec;
        RULES.check(spec).map_err(|message| for_empty(spec, message))?;
        check_headers(spec)?;
        if let Some(server) = &spec.embedded_auth_server {
            auth_server::check(server)?;
        }
        if let Some(roles) = &spec.aws_sts {
            aws_sts::check(roles)?;
        }
        if spec.upstream_inject.as_ref().is_some_and(|inject| inject.provider_name.is_empty()) {
            return Err("upstreamInject.providerName must not be empty".to_owned().into());
        }
        if let Some(obo) = &spec.obo {
            let refused = |message| Complaint::with_reason(message, reasons::INVALID_CONFIG);
            on_behalf_of::check(obo).map_err(refused)?;
        }
        Ok(())
    }

    fn advice(&self) -> Vec<Statement> {
        self.spec.embedded_auth_server.as_ref().map(auth_server::identity).into_iter().collect()
    }
}

/// Whether requests can carry the headers that are named.
fn check_headers(spec: &MCPExternalAuthConfigSpec) -> Result<(), String> {
    let injected = spec.header_injection.as_ref().map(|injection| injection.header_name.as_str());
    let exchanged = spec.token_exchange.as_ref().and_then(|exchange| exchange.external_token_header_name.as_deref());
    let exchanged = exchanged.filter(|name| !name.is_empty());
    let told = |field: &'static str| move |cause: String| format!("{field}: {cause}");
    injected.map_or(Ok(()), header_names::check).map_err(told("headerInjection.headerName"))?;
    exchanged.map_or(Ok(()), header_names::check_credential).map_err(told("tokenExchange.externalTokenHeaderName"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{complaint_about, judge};

    /// One valid spec for each type.
    fn examples() -> [(&'static str, Value); 8] {
        let secret = json!({"name": "s", "key": "k"});
        [
            ("tokenExchange", json!({"tokenUrl": "https://t", "audience": "a"})),
            ("headerInjection", json!({"headerName": "X", "valueSecretRef": secret})),
            ("bearerToken", json!({"tokenSecretRef": secret})),
            (
                "embeddedAuthServer",
                json!({"issuer": "https://i", "upstreamProviders": [
                    {"name": "p", "type": "oidc", "oidcConfig": {"issuerUrl": "https://p", "clientId": "c"}}]}),
            ),
            ("awsSts", json!({"region": "eu-central-1", "fallbackRoleArn": "arn:aws:iam::123456789012:role/r"})),
            ("upstreamInject", json!({"providerName": "p"})),
            ("obo", json!({"authority": "https://a"})),
            ("xaa", json!({"idpTokenUrl": "https://i", "targetTokenUrl": "https://t", "targetAudience": "a"})),
        ]
    }

    #[test]
    fn the_member_of_the_type_is_set_and_no_other() {
        judge::<MCPExternalAuthConfig>([(json!({"type": "unauthenticated"}), "")]);
        for (type_, settings) in examples() {
            judge::<MCPExternalAuthConfig>([(json!({"type": type_, type_: settings}), "")]);
            let rule = format!("{type_} configuration must be set if and only if type is '{type_}'");
            let told = complaint_about::<MCPExternalAuthConfig>(&json!({"type": type_}));
            assert!(told.starts_with(&rule), "{told}");
            let besides = json!({"type": "unauthenticated", type_: settings});
            let told = complaint_about::<MCPExternalAuthConfig>(&besides);
            assert_eq!(told, format!("{rule}\nno configuration must be set when type is 'unauthenticated'"));
        }
    }

    #[test]
    fn an_object_without_a_spec_is_invalid() {
        let object: MCPExternalAuthConfig = serde_json::from_value(json!({"metadata": {"name": "c"}})).unwrap();
        assert!(object.validate().is_err());
        assert_eq!(object.advice(), []);
    }

    #[test]
    fn headers_can_be_sent() {
        let secret = json!({"name": "s", "key": "k"});
        let injected = |name: &str| json!({"type": "headerInjection", "headerInjection": {"headerName": name, "valueSecretRef": secret}});
        let exchanged = |name: &str| {
            let settings = json!({"tokenUrl": "https://t", "audience": "a", "externalTokenHeaderName": name});
            json!({"type": "tokenExchange", "tokenExchange": settings})
        };
        judge::<MCPExternalAuthConfig>([
            (injected("X-Api-Key"), ""),
            (
                injected("Bad Header"),
                "headerInjection.headerName: \"Bad Header\" is no name of a header; use letters, digits and hyphens",
            ),
            (
                injected("Host"),
                "headerInjection.headerName: the header Host cannot be set: it says how a message travels, which the \
                 proxy decides",
            ),
            (exchanged(""), ""),
            (exchanged("X-Token"), ""),
            (
                exchanged("Host"),
                "tokenExchange.externalTokenHeaderName: the header Host cannot be set: it says how a message travels, which \
                 the proxy decides",
            ),
            (
                exchanged("Mcp-Session-Id"),
                "tokenExchange.externalTokenHeaderName: the header Mcp-Session-Id cannot hold a credential: it says what a \
                 message is; use another one",
            ),
            (
                exchanged("X:Token"),
                "tokenExchange.externalTokenHeaderName: \"X:Token\" is no name of a header; use letters, digits and \
                 hyphens",
            ),
        ]);
    }

    #[test]
    fn an_upstream_to_inject_is_named() {
        judge::<MCPExternalAuthConfig>([(
            json!({"type": "upstreamInject", "upstreamInject": {"providerName": ""}}),
            "upstreamInject.providerName must not be empty",
        )]);
    }
}
