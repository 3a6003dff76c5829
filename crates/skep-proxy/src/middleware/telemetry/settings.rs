//! What is told, and to whom.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::resource::Resource;
use crate::fetch::{self, FilesError};

/// What is told, and to whom.
#[derive(Debug, Clone, Default)]
pub struct TelemetrySettings {
    /// The server, as labels and spans call it.
    pub server: String,
    /// What the server speaks.
    pub transport: String,
    /// Whether spans have the older names of their attributes, too.
    pub has_legacy_attributes: bool,
    /// Variables of the environment that spans tell, with their values.
    pub variables: Vec<(String, String)>,
    /// What all of it is about.
    pub resource: Resource,
    /// Who is told, if anybody.
    pub collector: Option<CollectorSettings>,
    /// Where metrics can be asked for, if anywhere.
    pub prometheus: Option<PrometheusSettings>,
}

/// A collector that speaks OTLP over HTTP.
#[derive(Debug, Clone)]
pub struct CollectorSettings {
    /// `host:port[/base]`.
    pub endpoint: String,
    /// Whether it is told without TLS.
    pub is_insecure: bool,
    /// What it is told besides, as [`collector_headers`] makes them.
    pub headers: HeaderMap,
    /// Whom to trust instead of those whom this machine trusts.
    pub authorities: Option<PathBuf>,
    /// Which share of traces it is told about, from 0 to 1; none when it is told of no spans at all.
    pub traces: Option<f64>,
    /// Whether it is told what is counted.
    pub has_metrics: bool,
    /// How often it is told what is counted.
    pub interval: Duration,
    /// How long a span waits for others at most.
    pub delay: Duration,
}

impl CollectorSettings {
    /// A collector that is told nothing yet, as often as is usual.
    pub fn new(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            is_insecure: false,
            headers: HeaderMap::new(),
            authorities: None,
            traces: None,
            has_metrics: false,
            interval: Duration::from_mins(1),
            delay: Duration::from_secs(5),
        }
    }

    /// The address for one kind of things.
    pub(super) fn address(&self, kind: &str) -> Result<Uri, TelemetryError> {
        let scheme = if self.is_insecure { "http" } else { "https" };
        let place = self.endpoint.trim_end_matches('/');
        let place = place.strip_prefix("https://").or_else(|| place.strip_prefix("http://")).unwrap_or(place);
        let address: Option<Uri> = format!("{scheme}://{place}/v1/{kind}").parse().ok();
        address
            .filter(|address| address.host().is_some_and(|host| !host.is_empty()) && address.query().is_none())
            .ok_or_else(|| TelemetryError::Endpoint(fetch::without_user(&self.endpoint).into_owned()))
    }
}

/// Where metrics can be asked for.
#[derive(Debug, Clone)]
pub struct PrometheusSettings {
    /// The address of a listener for nothing else.
    pub host: String,
    pub port: u16,
    /// Whether they are told at the address of the server, too.
    pub is_on_transport: bool,
}

/// Why nothing can be told.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The address of the collector is none.
    #[error("endpoint {0:?} is not of the form HOST:PORT[/BASE]")]
    Endpoint(String),
    /// It must not be asked.
    #[error("endpoint: {0}")]
    Closed(#[from] fetch::FetchError),
    /// Nothing is to be told to it.
    #[error("endpoint is set, but neither tracingEnabled nor metricsEnabled is")]
    Silent,
    /// A header cannot be sent. What its value was is not repeated.
    #[error("headers: {0:?} is no header that can be sent")]
    Header(String),
    /// The authorities cannot be used.
    #[error("caCertPath: {0}")]
    Files(#[from] FilesError),
    /// There is no listener for metrics.
    #[error("prometheusPort: cannot listen on {host}:{port}, nor on another port: {cause}")]
    Listener { host: String, port: u16, cause: io::Error },
}

/// Headers for a collector. Their values are never shown.
pub fn collector_headers<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<HeaderMap, TelemetryError> {
    let read = |(name, value): (&str, &str)| {
        let wrong = || TelemetryError::Header(name.to_owned());
        let header: HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_an_address_for_each_kind() {
        for (endpoint, is_insecure, expected) in [
            ("otel:4318", true, Some("http://otel:4318/v1/traces")),
            ("otel:4318", false, Some("https://otel:4318/v1/traces")),
            ("otel.example.com/base/", false, Some("https://otel.example.com/base/v1/traces")),
            ("https://otel:4318", true, Some("http://otel:4318/v1/traces")),
            ("[::1]:4318", true, Some("http://[::1]:4318/v1/traces")),
            ("", false, None),
            ("a b", false, None),
            ("otel?x=1", false, None),
        ] {
            let collector = CollectorSettings { is_insecure, ..CollectorSettings::new(endpoint) };
            let address = collector.address("traces").ok().map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{endpoint}");
        }
        let told = CollectorSettings::new("http://bee:ho ney@otel").address("traces").unwrap_err().to_string();
        assert!(told.contains("\"http://otel\"") && !told.contains("ney"), "{told}");
    }

    #[test]
    fn trap_58_headers_of_a_collector_are_not_told() {
        let headers = collector_headers([("X-Api-Key", "hunter2")]).unwrap();
        let collector = CollectorSettings { headers, ..CollectorSettings::new("otel:4318") };
        let settings = TelemetrySettings { collector: Some(collector), ..TelemetrySettings::default() };
        let told = format!("{settings:?}");
        assert!(told.contains("x-api-key") && !told.contains("hunter2"), "{told}");
        let wrong = collector_headers([("X-A", "hunter2\n")]).unwrap_err().to_string();
        assert!(wrong.contains("X-A") && !wrong.contains("hunter2"), "{wrong}");
    }
}
