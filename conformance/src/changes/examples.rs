//! Specs of config kinds, good and bad.

use serde_json::{Value, json};
use skep_api::kind::Kind;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
};

/// A config kind of which there are examples.
///
/// A spec says null where one of another sort has something, so that one can be patched into the other.
pub trait Example: Kind {
    /// A valid spec; every number gives another one.
    fn good(number: usize) -> Value;

    /// A spec that admission accepts and the controller does not, if there is one.
    fn bad() -> Option<Value>;

    /// A valid spec of another sort, if there is one.
    fn unlike() -> Option<Value> {
        None
    }

    /// The member of an MCPServer's spec that names the object.
    const MEMBER: &'static str;

    /// What that member says.
    fn reference(name: &str) -> Value {
        json!({"name": name})
    }
}

impl Example for MCPOIDCConfig {
    const MEMBER: &'static str = "oidcConfigRef";

    fn good(number: usize) -> Value {
        let issuer = format!("https://issuer-{number}.example");
        json!({"type": "inline", "inline": {"issuer": issuer, "caBundleRef": null}})
    }

    fn bad() -> Option<Value> {
        Some(json!({"type": "inline", "inline": {"issuer": "ftp://100%.example", "caBundleRef": null}}))
    }

    /// With certificates, in a ConfigMap.
    fn unlike() -> Option<Value> {
        let bundle = json!({"configMapRef": {"name": "ca", "key": "ca.crt"}});
        Some(json!({"type": "inline", "inline": {"issuer": "https://issuer.example", "caBundleRef": bundle}}))
    }

    fn reference(name: &str) -> Value {
        json!({"name": name, "audience": "a"})
    }
}

impl Example for MCPExternalAuthConfig {
    const MEMBER: &'static str = "externalAuthConfigRef";

    fn good(number: usize) -> Value {
        let secret = json!({"name": format!("secret-{number}"), "key": "k"});
        json!({"type": "bearerToken", "bearerToken": {"tokenSecretRef": secret}, "obo": null, "embeddedAuthServer": null})
    }

    fn bad() -> Option<Value> {
        Some(json!({"type": "obo", "obo": {}, "bearerToken": null, "embeddedAuthServer": null}))
    }

    /// An authorization server, which `authServerRef` can name.
    fn unlike() -> Option<Value> {
        let secret = json!({"name": "secret-0", "key": "k"});
        let provider = json!({"name": "idp", "type": "oidc", "oidcConfig": {"clientId": "c",
            "issuerUrl": "https://idp.example", "clientSecretRef": secret}});
        let server = json!({"issuer": "https://auth.example", "upstreamProviders": [provider]});
        Some(json!({"type": "embeddedAuthServer", "embeddedAuthServer": server, "bearerToken": null, "obo": null}))
    }
}

impl Example for MCPAuthzConfig {
    const MEMBER: &'static str = "authzConfigRef";

    fn good(number: usize) -> Value {
        let policy = format!("permit(principal == Client::\"{number}\", action, resource);");
        json!({"type": "cedarv1", "config": {"policies": [policy]}})
    }

    fn bad() -> Option<Value> {
        Some(json!({"type": "opa", "config": {"policies": []}}))
    }
}

impl Example for MCPToolConfig {
    const MEMBER: &'static str = "toolConfigRef";

    fn good(number: usize) -> Value {
        json!({"toolsFilter": [format!("tool-{number}")]})
    }

    fn bad() -> Option<Value> {
        None
    }
}

impl Example for MCPTelemetryConfig {
    const MEMBER: &'static str = "telemetryConfigRef";

    fn good(number: usize) -> Value {
        json!({"openTelemetry": {"endpoint": format!("collector-{number}:4318"), "tracing": {"enabled": true}}})
    }

    fn bad() -> Option<Value> {
        Some(json!({"openTelemetry": {"endpoint": "collector:4318", "tracing": {"enabled": false}}}))
    }
}

impl Example for MCPWebhookConfig {
    const MEMBER: &'static str = "webhookConfigRef";

    fn good(number: usize) -> Value {
        json!({"validating": [{"name": "w", "url": format!("https://hook-{number}.example")}]})
    }

    fn bad() -> Option<Value> {
        Some(json!({"validating": [{"name": "w", "url": "http://hook.example"}]}))
    }
}

/// Does something with each of the six kinds, one after the other; with a `?` at the end, until that fails. The kinds have
/// to be in scope.
#[macro_export]
macro_rules! for_every_kind {
    ($step:ident, $argument:expr $(, $after:tt)?) => {{
        $step::<MCPAuthzConfig>($argument).await$($after)?;
        $step::<MCPExternalAuthConfig>($argument).await$($after)?;
        $step::<MCPOIDCConfig>($argument).await$($after)?;
        $step::<MCPTelemetryConfig>($argument).await$($after)?;
        $step::<MCPToolConfig>($argument).await$($after)?;
        $step::<MCPWebhookConfig>($argument).await$($after)?;
    }};
}
