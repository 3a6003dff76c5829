//! MCPWebhookConfig: services that look at requests before the MCP server does.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::config_status::{ConfigStatus, REFERENCES_COLUMN, VALID_COLUMN};
use super::references::SecretKeyRef;
use crate::duration::DurationText;
use crate::kind::{Column, Versions, kind};

kind! {
    /// MCPWebhookConfig names services that the proxy asks about every request before the MCP server gets it. Mutating
    /// webhooks can change a request, validating webhooks can refuse it. MCPServers name it in their
    /// webhookConfigRef.
    MCPWebhookConfig(MCPWebhookConfigSpec, ConfigStatus) {
        plural: "mcpwebhookconfigs",
        short_names: &["mwc"],
        versions: Versions::AlphaOnly,
        columns: &[VALID_COLUMN, REFERENCES_COLUMN, Column::AGE],
        scale: None,
    }
}

/// The services to ask, at least one. Those of each list are asked in its order; the first that refuses ends it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(has(self.validating) ? size(self.validating) : 0) + (has(self.mutating) ? size(self.mutating) : 0) > 0",
        "message": "at least one validating or mutating webhook must be defined",
    },
]))]
pub struct MCPWebhookConfigSpec {
    /// Services that can change a request or refuse it. They are asked before the validating ones, and each sees
    /// what the one before it made of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutating: Vec<Webhook>,
    /// Services that can refuse a request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validating: Vec<Webhook>,
}

/// A service that is asked about requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// What happens to a request when the service does not answer as it should.
    #[serde(default)]
    pub failure_policy: WebhookFailurePolicy,
    /// The key of a Secret with which requests to the service are signed, in the header X-ToolHive-Signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_secret_ref: Option<SecretKeyRef>,
    /// A name for messages and logs. Each webhook of a list has its own.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How long the service may take to answer, from `1s` to `30s`. Defaults to `10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub timeout: Option<DurationText>,
    /// TLS to the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<WebhookTls>,
    /// The address of the service. It must be https unless tlsConfig.insecureSkipVerify is set.
    #[schemars(extend("format" = "uri"))]
    pub url: String,
}

/// What happens to a request when a webhook does not answer as it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookFailurePolicy {
    /// The request is refused.
    #[default]
    Fail,
    /// The request goes on as if the webhook were not there.
    Ignore,
}

/// Objects that are older than the schema have it in other letters.
impl<'de> Deserialize<'de> for WebhookFailurePolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.to_ascii_lowercase().as_str() {
            "fail" => Ok(Self::Fail),
            "ignore" => Ok(Self::Ignore),
            _ => Err(D::Error::unknown_variant(&text, &["fail", "ignore"])),
        }
    }
}

/// How a webhook and the proxy prove to each other who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTls {
    /// The key of a Secret that holds the certificate of the service's authority, in PEM form. Defaults to the
    /// authorities that the system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<SecretKeyRef>,
    /// The key of a Secret that holds the certificate the proxy shows, in PEM form. Needs clientKeySecretRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cert_secret_ref: Option<SecretKeyRef>,
    /// The key of a Secret that holds the private key of that certificate, in PEM form. Needs clientCertSecretRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key_secret_ref: Option<SecretKeyRef>,
    /// Whether any certificate is accepted, and plain http as well. For development only: whoever can change the
    /// traffic can answer in the service's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
}
