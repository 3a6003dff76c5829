//! What is told about requests, read by those whom it is for.

mod era;
pub(crate) mod faults;
mod limits;
mod metrics;
mod page;
mod replaced;
mod spans;

use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;
use skep_proxy::middleware::{
    Authentication, CollectorSettings, PrometheusSettings, Step, Telemetry, TelemetrySettings,
};
use skep_proxy::transparent::Dialect;

use crate::authz::guarded;
use crate::http::PATIENCE;
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// Longer than any test.
const NEVER: Duration = Duration::from_hours(1);

fn settings() -> TelemetrySettings {
    TelemetrySettings {
        server: "hive".to_owned(),
        transport: "streamable-http".to_owned(),
        resource: [("service.name".to_owned(), "apiary".to_owned())].into(),
        ..TelemetrySettings::default()
    }
}

/// A page at the address of the server, and at any port besides.
fn prometheus() -> PrometheusSettings {
    PrometheusSettings { host: "127.0.0.1".to_owned(), port: 0, is_on_transport: true }
}

/// A collector that is told of everything, but not before the end.
fn collector(at: &str) -> CollectorSettings {
    CollectorSettings {
        is_insecure: true,
        traces: Some(1.0),
        has_metrics: true,
        interval: NEVER,
        delay: NEVER,
        headers: HeaderMap::new(),
        ..CollectorSettings::new(at)
    }
}

/// A collector that takes everything.
async fn taking() -> Server {
    Server::start(|_: &Seen| reply(200, &[("content-type", "application/x-protobuf")], "")).await
}

/// A proxy that tells, with what is behind that.
async fn proxy(server: &Server, settings: TelemetrySettings, behind: Vec<Step>) -> Before {
    let telemetry = Telemetry::new(settings).unwrap();
    let mut steps = vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, Step::Telemetry(telemetry)];
    steps.extend(behind);
    guarded(server, Dialect::Streamable, steps).await
}

/// The bodies of requests to a collector for one kind of things.
fn told<'a>(seen: &'a [Seen], kind: &str) -> Vec<&'a [u8]> {
    let path = format!("/v1/{kind}");
    seen.iter().filter(|seen| seen.target.ends_with(&path)).map(|seen| &*seen.body).collect()
}

/// The only span with this name.
fn span<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found: Vec<_> = spans.iter().filter(|span| span["name"] == name).collect();
    assert_eq!(found.len(), 1, "{name}: {spans:#?}");
    found[0]
}

/// What a collector has got, when it is enough.
async fn until(collector: &Server, mut is_enough: impl FnMut(&[Seen]) -> bool) -> Vec<Seen> {
    let mut all = Vec::new();
    let waiting = async {
        while !is_enough(&all) {
            tokio::time::sleep(Duration::from_millis(5)).await;
            all.extend(collector.seen());
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    all
}

/// A tool that is called `broken` breaks; all others say their names.
fn tools(seen: &Seen) -> Reply {
    let message = seen.json();
    if message["params"]["name"] == "broken" {
        return reply(500, &[], "");
    }
    crate::middleware::with_tools(seen)
}
