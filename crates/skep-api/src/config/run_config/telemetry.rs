//! Traces and metrics.

use std::collections::BTreeMap;

use crate::config::document::object;
use crate::sensitive::Sensitive;

object! {
    /// Where traces and metrics go. Member names are in camel case.
    pub struct TelemetryConfig {
        omit ca_cert_path: String = "caCertPath",
        /// Attributes of the resource.
        omit custom_attributes: BTreeMap<String, String> = "customAttributes",
        omit enable_prometheus_metrics_path: bool = "enablePrometheusMetricsPath",
        /// The OTLP receiver as `host:port[/base]`, without scheme.
        omit endpoint: String,
        /// The environment variables whose values become attributes.
        omit environment_variables: Vec<String> = "environmentVariables",
        omit headers: BTreeMap<String, Sensitive>,
        omit insecure: bool,
        always metrics_enabled: bool = "metricsEnabled",
        /// Whether Prometheus metrics are also served on the MCP port. Unset means yes.
        omit metrics_on_transport_port: Option<bool> = "metricsOnTransportPort",
        /// 0 means the default.
        omit prometheus_port: i32 = "prometheusPort",
        /// A number from 0 to 1 as a text. Empty means 0.
        omit sampling_rate: String = "samplingRate",
        omit service_name: String = "serviceName",
        omit service_version: String = "serviceVersion",
        always tracing_enabled: bool = "tracingEnabled",
        always use_legacy_attributes: bool = "useLegacyAttributes",
    }
}

impl TelemetryConfig {
    pub const DEFAULT_PROMETHEUS_PORT: u16 = 9464;
}
