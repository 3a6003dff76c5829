//! Where traces and metrics go.

use skep_api::config::run_config::TelemetryConfig;
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPTelemetryConfig;
use skep_api::kinds::mcp_telemetry_config::OpenTelemetry;
use skep_api::names::ca_bundle as bundle_names;

use super::named;
use crate::ca_bundle;
use crate::proxy::Inputs;

/// What the object says, under the name that the workload goes by in traces.
pub(super) fn config(inputs: &Inputs<'_>) -> Result<Option<TelemetryConfig>, String> {
    let reference = inputs.common.telemetry_config_ref;
    let name = reference.map(|reference| reference.name.as_str());
    let object = named(MCPTelemetryConfig::DEFINITION.kind, name, inputs.resolved.telemetry.as_ref())?;
    let (Some(reference), Some(object)) = (reference, object) else { return Ok(None) };
    let service = reference.service_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(inputs.common.name);
    let open_telemetry = object.spec.open_telemetry.as_ref();
    let exporter = open_telemetry.filter(|exporter| exporter.enabled).map(exporter).unwrap_or_default();
    Ok(Some(TelemetryConfig {
        ca_cert_path: open_telemetry.map(ca_file).transpose()?.unwrap_or_default(),
        enable_prometheus_metrics_path: object.spec.prometheus.is_some_and(|prometheus| prometheus.enabled),
        service_name: service.to_owned(),
        ..exporter
    }))
}

/// The file is mounted whether or not anything is sent, so its path does not depend on that either.
fn ca_file(exporter: &OpenTelemetry) -> Result<String, String> {
    let Some(bundle) = &exporter.ca_bundle_ref else { return Ok(String::new()) };
    let selector =
        ca_bundle::check(bundle).map_err(|cause| format!("failed to resolve MCPTelemetryConfig: {cause}"))?;
    Ok(bundle_names::telemetry_file(&selector.name, &selector.key))
}

/// Headers with secret values are not here: their values come from the environment.
fn exporter(exporter: &OpenTelemetry) -> TelemetryConfig {
    TelemetryConfig {
        custom_attributes: exporter.resource_attributes.clone(),
        endpoint: exporter.endpoint.as_deref().map(without_scheme).unwrap_or_default().to_owned(),
        headers: exporter.headers.clone(),
        insecure: exporter.insecure,
        metrics_enabled: exporter.metrics.is_some_and(|metrics| metrics.enabled),
        sampling_rate: exporter.tracing.as_ref().map(|tracing| share(&tracing.sampling_rate)).unwrap_or_default(),
        tracing_enabled: exporter.tracing.as_ref().is_some_and(|tracing| tracing.enabled),
        use_legacy_attributes: exporter.use_legacy_attributes,
        ..TelemetryConfig::default()
    }
}

fn without_scheme(endpoint: &str) -> &str {
    let endpoint = endpoint.strip_prefix("https://").unwrap_or(endpoint);
    endpoint.strip_prefix("http://").unwrap_or(endpoint)
}

/// A number from 0 to 1; nothing for what is not a number.
fn share(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(share) if share.is_finite() => share.clamp(0.0, 1.0).to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_clamped() {
        for (text, expected) in [
            ("0.05", "0.05"),
            ("1.0", "1"),
            ("7", "1"),
            ("-0.5", "0"),
            ("", ""),
            ("half", ""),
            ("NaN", ""),
            ("inf", ""),
        ] {
            assert_eq!(share(text), expected, "{text}");
        }
    }

    #[test]
    fn schemes_are_dropped() {
        for endpoint in ["http://otel:4318/base", "https://otel:4318/base", "otel:4318/base"] {
            assert_eq!(without_scheme(endpoint), "otel:4318/base");
        }
    }
}
