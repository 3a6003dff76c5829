//! Inputs as files, so that a case is a document and not code.

mod auth_server_mistakes;
mod cases;
mod maps;
mod mistakes;
mod properties;
mod unusable;

use serde::Deserialize;
use serde_json::{Value, json};
use skep_api::config::run_config::{AuthzConfig, RunConfig};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};

use super::{BuildError, build};
use crate::proxy::{Inputs, Proxied, Resolved};
use crate::settings::{DefaultRedis, ProxySettings};

/// What the texts about an MCPServer begin with.
const FROM_SERVER: &str = "failed to create RunConfig from MCPServer: ";

/// A workload, the objects that it names, and what the operator was told.
#[derive(Debug)]
struct Case {
    workload: Workload,
    resolved: Resolved,
    settings: ProxySettings,
}

#[derive(Debug)]
enum Workload {
    Server(Box<MCPServer>),
    Proxy(Box<MCPRemoteProxy>),
}

impl Case {
    /// Reads a case: `object`, and what there is of `resolved` and `settings`.
    fn read(case: &Value) -> Self {
        let object = case["object"].clone();
        let workload = match object["kind"].as_str() {
            Some("MCPServer") => Workload::Server(Box::new(serde_json::from_value(object).unwrap())),
            Some("MCPRemoteProxy") => Workload::Proxy(Box::new(serde_json::from_value(object).unwrap())),
            other => panic!("{other:?} has no proxy"),
        };
        let resolved = &case["resolved"];
        let defaults = ProxySettings::default();
        let settings = ProxySettings {
            host: part(&case["settings"]["host"]).unwrap_or(defaults.host.clone()),
            redis: part(&case["settings"]["redis"]).map(|address| DefaultRedis { address, password: None }),
            ..defaults
        };
        let resolved = Resolved {
            authz: part::<MCPAuthzConfig>(&resolved["authz"]),
            authz_document: part::<AuthzConfig>(&resolved["authzDocument"]),
            auth_server: part::<MCPExternalAuthConfig>(&resolved["authServer"]),
            external_auth: part::<MCPExternalAuthConfig>(&resolved["externalAuth"]),
            oidc: part::<MCPOIDCConfig>(&resolved["oidc"]),
            oidc_client_secret: false,
            permission_profile: None,
            telemetry: part::<MCPTelemetryConfig>(&resolved["telemetry"]),
            tools: part::<MCPToolConfig>(&resolved["tools"]),
            webhooks: part::<MCPWebhookConfig>(&resolved["webhooks"]),
        };
        Self { workload, resolved, settings }
    }

    fn inputs(&self) -> Inputs<'_> {
        let (common, target) = match &self.workload {
            Workload::Server(server) => (server.common(), server.target()),
            Workload::Proxy(proxy) => (proxy.common(), proxy.target()),
        };
        Inputs { common, target, resolved: &self.resolved, settings: &self.settings }
    }

    fn build(&self) -> Result<RunConfig, BuildError> {
        build(&self.inputs())
    }
}

fn part<T: for<'de> Deserialize<'de>>(value: &Value) -> Option<T> {
    (!value.is_null()).then(|| serde_json::from_value(value.clone()).unwrap())
}

fn server(spec: &Value) -> Value {
    let mut object = json!({
        "kind": "MCPServer",
        "metadata": { "name": "weather", "namespace": "tools", "generation": 3 },
        "spec": { "image": "ghcr.io/example/weather:3" },
    });
    json_patch::merge(&mut object["spec"], spec);
    json!({ "object": object })
}

fn proxy(spec: &Value) -> Value {
    let mut object = json!({
        "kind": "MCPRemoteProxy",
        "metadata": { "name": "github", "namespace": "tools", "generation": 5 },
        "spec": { "remoteUrl": "https://mcp.example.com/mcp" },
    });
    json_patch::merge(&mut object["spec"], spec);
    json!({ "object": object })
}

/// An object that a case resolves to.
fn found(case: Value, name: &str, spec: &Value) -> Value {
    let mut case = case;
    json_patch::merge(&mut case, &json!({ "resolved": { name: { "metadata": { "name": "c" }, "spec": spec } } }));
    case
}

fn error(case: &Value) -> BuildError {
    match Case::read(case).build() {
        Ok(_) => panic!("built: {case}"),
        Err(error) => error,
    }
}

/// What is said about a case that cannot be written down.
fn create(case: &Value) -> String {
    let error = error(case);
    assert!(matches!(error, BuildError::Create { .. }), "{error:?}");
    error.to_string()
}
