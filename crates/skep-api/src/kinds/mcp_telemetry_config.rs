//! MCPTelemetryConfig: where traces and metrics go.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::ca_bundle::CABundleRef;
use super::config_status::{ConfigStatus, REFERENCES_COLUMN, VALID_COLUMN};
use super::references::SecretKeyRef;
use crate::kind::{Column, Versions, kind};
use crate::sensitive::Sensitive;

kind! {
    /// MCPTelemetryConfig says where traces and metrics go. Workloads name it in their telemetryConfigRef, where each
    /// of them can add a service name of its own.
    MCPTelemetryConfig(MCPTelemetryConfigSpec, ConfigStatus) {
        plural: "mcptelemetryconfigs",
        short_names: &["mcpotel"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[
            Column::string("Endpoint", ".spec.openTelemetry.endpoint"),
            VALID_COLUMN,
            Column::boolean("Tracing", ".spec.openTelemetry.tracing.enabled"),
            Column::boolean("Metrics", ".spec.openTelemetry.metrics.enabled"),
            REFERENCES_COLUMN,
            Column::AGE,
        ],
        scale: None,
    }
}

/// Where traces and metrics go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPTelemetryConfigSpec {
    /// Traces and metrics that are sent to an OpenTelemetry collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_telemetry: Option<OpenTelemetry>,
    /// Metrics that Prometheus fetches. They do not depend on openTelemetry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<Prometheus>,
}

/// Traces and metrics that are sent to an OpenTelemetry collector, with OTLP over HTTP.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.headers) || !has(self.sensitiveHeaders) || self.sensitiveHeaders.all(sh, !(sh.name in self.headers))",
        "message": "a header name cannot appear in both headers and sensitiveHeaders",
    },
]))]
pub struct OpenTelemetry {
    /// The authorities that vouch for the collector's certificate. Defaults to those that the system trusts. Not
    /// together with insecure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle_ref: Option<CABundleRef>,
    /// Whether anything is sent at all.
    #[serde(default)]
    pub enabled: bool,
    /// The address of the collector as host:port, with a path if it has one. A leading `http://` or `https://` is
    /// ignored; insecure decides. Needs tracing or metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Headers to add to requests to the collector. They are stored and shown in clear text: keep credentials in
    /// sensitiveHeaders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Sensitive>,
    /// Whether the collector is spoken to in plain http.
    #[serde(default)]
    pub insecure: bool,
    /// Whether metrics are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<OpenTelemetryMetrics>,
    /// Attributes to add to everything that is sent, such as the name of the environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_attributes: BTreeMap<String, String>,
    /// Headers to add to requests to the collector, with values from Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub sensitive_headers: Vec<SensitiveHeader>,
    /// Whether traces are sent, and how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracing: Option<OpenTelemetryTracing>,
    /// Whether spans carry the attribute names of older OpenTelemetry conventions beside the present ones. Set it to
    /// false when no dashboard needs them any more.
    #[serde(default = "legacy_attributes_are_on")]
    #[default(true)]
    pub use_legacy_attributes: bool,
}

fn legacy_attributes_are_on() -> bool {
    true
}

/// Metrics that are sent to the collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenTelemetryMetrics {
    /// Whether metrics are sent.
    #[serde(default)]
    pub enabled: bool,
}

/// The share of requests that are traced when nothing is said.
pub const DEFAULT_SAMPLING_RATE: &str = "0.05";

/// Traces that are sent to the collector.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenTelemetryTracing {
    /// Whether traces are sent.
    #[serde(default)]
    pub enabled: bool,
    /// The share of requests that are traced, from `0` for none to `1` for all. A request that its caller traces is
    /// always traced.
    #[serde(default = "default_sampling_rate")]
    #[default(default_sampling_rate())]
    #[schemars(regex(pattern = r"^(0(\.\d+)?|1(\.0+)?)$"))]
    pub sampling_rate: String,
}

fn default_sampling_rate() -> String {
    DEFAULT_SAMPLING_RATE.to_owned()
}

/// A header whose value comes from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SensitiveHeader {
    /// The name of the header. It must not be in headers as well.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The key of a Secret that holds the value.
    pub secret_key_ref: SecretKeyRef,
}

/// Metrics that Prometheus fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prometheus {
    /// Whether the proxy serves its metrics at `/metrics`.
    #[serde(default)]
    pub enabled: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_is_what_the_default_has() {
        assert_eq!(serde_json::from_value::<OpenTelemetry>(json!({})).unwrap(), OpenTelemetry::default());
        assert_eq!(serde_json::from_value::<OpenTelemetryTracing>(json!({})).unwrap(), OpenTelemetryTracing::default());
    }
}
