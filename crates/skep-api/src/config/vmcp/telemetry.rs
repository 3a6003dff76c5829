//! Where traces and metrics go.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::kinds::mcp_telemetry_config::DEFAULT_SAMPLING_RATE;
use crate::raw::RawObject;
use crate::sensitive::Sensitive;

/// Where traces and metrics go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TelemetrySettings {
    /// The file of CA certificates that the collector's certificate is checked with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_cert_path: Option<String>,
    /// Attributes that are added to everything that is reported.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub custom_attributes: BTreeMap<String, String>,
    /// Whether metrics are served under /metrics for Prometheus. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub enable_prometheus_metrics_path: Option<bool>,
    /// The OTLP collector as host:port, without a scheme. Without it nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Environment variables of the server whose values are added to traces.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub environment_variables: Vec<String>,
    /// Headers that are sent to the collector. They are stored in clear text.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Sensitive>,
    /// Whether the collector is spoken to without TLS. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub insecure: Option<bool>,
    /// Whether metrics are sent to the collector. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub metrics_enabled: Option<bool>,
    /// Whether /metrics is served on the port that clients use instead of a port of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_on_transport_port: Option<bool>,
    /// The port on which /metrics is served when it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    pub prometheus_port: Option<i64>,
    /// The share of requests that are traced, from 0 to 1, written as text. Defaults to 0.05.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_SAMPLING_RATE))]
    pub sampling_rate: Option<String>,
    /// The name of the service in traces and metrics. Defaults to the name of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// The version of the service in traces and metrics. Defaults to the version of Skep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_version: Option<String>,
    /// Whether traces are sent to the collector. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub tracing_enabled: Option<bool>,
    /// Whether spans also carry attributes under their former names. Defaults to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub use_legacy_attributes: Option<bool>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
