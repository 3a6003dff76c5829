//! What is told about requests and to whom, as a document says it.

use std::collections::BTreeMap;

use skep_api::config::run_config::middleware::TelemetryParameters;
use skep_api::config::run_config::{RunConfig, TelemetryConfig};
use skep_api::names::env::{runner, telemetry_header_name};
use skep_proxy::middleware::{
    CollectorSettings, PrometheusSettings, Resource, Service, Telemetry, TelemetrySettings, collector_headers,
};

use super::mounted::mounted;
use super::{Variables, front};

/// Begins to tell; nothing when there is nobody who wants to know.
pub(super) fn telemetry(
    parameters: &TelemetryParameters,
    config: &RunConfig,
    variables: Variables<'_>,
) -> Result<Option<Telemetry>, String> {
    // Names that are no text are none of ours.
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let settings = settings(parameters, config, variables, environment)?;
    if settings.collector.is_none() && settings.prometheus.is_none() {
        return Ok(None);
    }
    Telemetry::new(settings).map(Some).map_err(|error| error.to_string())
}

fn settings(
    parameters: &TelemetryParameters,
    config: &RunConfig,
    variables: Variables<'_>,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<TelemetrySettings, String> {
    let asked = parameters.config.as_ref().ok_or("it has no config")?;
    let named = |name: &str, otherwise: &str| if name.is_empty() { otherwise.to_owned() } else { name.to_owned() };
    let has_collector = !asked.endpoint.is_empty();
    Ok(TelemetrySettings {
        server: named(&parameters.server_name, &config.name),
        transport: named(&parameters.transport, config.transport.as_str()),
        has_legacy_attributes: asked.use_legacy_attributes,
        variables: told_variables(asked, variables),
        resource: resource(asked, config, variables),
        collector: has_collector.then(|| collector(asked, variables, environment)).transpose()?,
        prometheus: asked.enable_prometheus_metrics_path.then(|| prometheus(asked, config, variables)).transpose()?,
    })
}

fn told_variables(asked: &TelemetryConfig, variables: Variables<'_>) -> Vec<(String, String)> {
    let names = asked.environment_variables.iter();
    names.filter_map(|name| Some((name.clone(), variables(name)?))).collect()
}

/// A service that nobody has named gets the name that the reference gives it.
fn resource(asked: &TelemetryConfig, config: &RunConfig, variables: Variables<'_>) -> Resource {
    let version = if asked.service_version.is_empty() { env!("CARGO_PKG_VERSION") } else { &asked.service_version };
    let service = Service {
        name: asked.service_name.clone(),
        version: version.to_owned(),
        attributes: asked.custom_attributes.clone(),
    };
    let mut resource = service.resource(&variables(runner::OTEL_RESOURCE_ATTRIBUTES).unwrap_or_default());
    resource.entry("service.name".to_owned()).or_insert_with(|| format!("thv-{}", config.name));
    resource
}

/// Headers with secret values are in the environment, under names that are made of theirs.
fn collector(
    asked: &TelemetryConfig,
    variables: Variables<'_>,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<CollectorSettings, String> {
    let plain = asked.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.expose().to_owned()));
    let mut headers: BTreeMap<String, String> = plain.collect();
    headers.extend(environment.filter_map(|(name, value)| Some((telemetry_header_name(&name)?, value))));
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let authorities = (!asked.ca_cert_path.is_empty()).then(|| mounted(&asked.ca_cert_path, variables));
    Ok(CollectorSettings {
        is_insecure: asked.insecure,
        headers: collector_headers(headers).map_err(|error| error.to_string())?,
        authorities,
        traces: asked.tracing_enabled.then(|| share(&asked.sampling_rate)),
        has_metrics: asked.metrics_enabled,
        ..CollectorSettings::new(&asked.endpoint)
    })
}

fn prometheus(
    asked: &TelemetryConfig,
    config: &RunConfig,
    variables: Variables<'_>,
) -> Result<PrometheusSettings, String> {
    let port = match u16::try_from(asked.prometheus_port) {
        Ok(0) => TelemetryConfig::DEFAULT_PROMETHEUS_PORT,
        Ok(port) => port,
        Err(_) => return Err(format!("prometheusPort: {} is no port", asked.prometheus_port)),
    };
    let is_on_transport = asked.metrics_on_transport_port.unwrap_or(true);
    Ok(PrometheusSettings { host: front::host(config, variables), port, is_on_transport })
}

/// A number from 0 to 1; what is none counts as 0.
fn share(text: &str) -> f64 {
    text.parse().ok().filter(|share: &f64| share.is_finite()).map_or(0.0, |share| share.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(telemetry: &str, environment: &[(&str, &str)]) -> Result<TelemetrySettings, String> {
        let text = format!(r#"{{"name": "hive", "transport": "stdio", "telemetry_config": {telemetry}}}"#);
        let config = RunConfig::from_json(&text).unwrap();
        let parameters =
            TelemetryParameters { config: config.telemetry_config.clone(), ..TelemetryParameters::default() };
        let find =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let all = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        settings(&parameters, &config, &find, all)
    }

    #[test]
    fn a_document_and_the_environment_say_what_is_told_to_whom() {
        let text = r#"{"endpoint": "otel:4318/base", "insecure": true, "tracingEnabled": true, "metricsEnabled": true,
            "samplingRate": "0.5", "headers": {"X-Tenant": "t", "X-Key": "plain"}, "customAttributes": {"team": "bees"},
            "environmentVariables": ["YARD", "MISSING"], "serviceName": "apiary", "useLegacyAttributes": true,
            "enablePrometheusMetricsPath": true, "metricsOnTransportPort": false}"#;
        let environment = [
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=x,service.namespace=ns"),
            ("TOOLHIVE_OTEL_HEADER_X_KEY", "hunter2"),
            ("YARD", "north"),
        ];
        let settings = read(text, &environment).unwrap();
        assert_eq!((settings.server.as_str(), settings.transport.as_str()), ("hive", "stdio"));
        assert_eq!(settings.variables, [("YARD".to_owned(), "north".to_owned())]);
        let told = |name: &str| settings.resource.get(name).map(String::as_str);
        assert_eq!((told("service.name"), told("service.namespace")), (Some("apiary"), Some("ns")));
        assert_eq!((told("team"), told("service.version")), (Some("bees"), Some(env!("CARGO_PKG_VERSION"))));
        assert!(!format!("{settings:?}").contains("hunter2"), "secrets are not shown");
        let collector = settings.collector.unwrap();
        assert_eq!(collector.headers["x-key"], "hunter2", "the environment wins");
        assert_eq!(collector.headers["x-tenant"], "t");
        assert_eq!((collector.traces, collector.has_metrics, collector.is_insecure), (Some(0.5), true, true));
        let prometheus = settings.prometheus.unwrap();
        assert_eq!((prometheus.host.as_str(), prometheus.port, prometheus.is_on_transport), ("127.0.0.1", 9464, false));
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        let settings = read(r#"{"enablePrometheusMetricsPath": true}"#, &[]).unwrap();
        assert!(settings.collector.is_none() && settings.prometheus.unwrap().is_on_transport);
        assert_eq!(settings.resource["service.name"], "thv-hive");
        let quiet = read("{}", &[("TOOLHIVE_OTEL_HEADER_X", "y")]).unwrap();
        assert!(quiet.collector.is_none() && quiet.prometheus.is_none());
        for (text, expected) in [("", 0.0), ("half", 0.0), ("NaN", 0.0), ("7", 1.0), ("-1", 0.0), ("0.05", 0.05)] {
            assert!((share(text) - expected).abs() < 1e-9, "{text}");
        }
        let wrong = read(r#"{"enablePrometheusMetricsPath": true, "prometheusPort": 70000}"#, &[]).unwrap_err();
        assert!(wrong.contains("prometheusPort: 70000"), "{wrong}");
        let wrong = read(r#"{"endpoint": "otel:1", "headers": {"a b": "c"}}"#, &[]).unwrap_err();
        assert!(wrong.contains("a b"), "{wrong}");
    }
}
