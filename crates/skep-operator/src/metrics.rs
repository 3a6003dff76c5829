//! What the operator counts, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use skep_control::{Key, Observer, Queue};
use tower::BoxError;

/// Upper bounds of the histogram of durations, in seconds.
const BOUNDS: [f64; 8] = [0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 20.0, 60.0];

/// All counters of a process.
#[derive(Debug, Default)]
pub struct Metrics {
    controllers: Mutex<BTreeMap<&'static str, Arc<Passes>>>,
    /// How often each verb was used on each resource, and with which answer.
    requests: Mutex<BTreeMap<(&'static str, String, u16), u64>>,
}

/// The passes of one controller.
#[derive(Debug)]
pub struct Passes {
    queue: Arc<Queue<Key>>,
    succeeded: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
    buckets: [AtomicU64; BOUNDS.len()],
}

impl Observer for Passes {
    fn passed(&self, took: Duration, succeeded: bool) {
        let counter = if succeeded { &self.succeeded } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        for (bound, bucket) in BOUNDS.iter().zip(&self.buckets) {
            if took.as_secs_f64() <= *bound {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Metrics {
    /// The counters of a controller.
    pub fn controller(&self, kind: &'static str, queue: Arc<Queue<Key>>) -> Arc<Passes> {
        let passes = Arc::new(Passes {
            queue,
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            micros: AtomicU64::new(0),
            buckets: Default::default(),
        });
        self.controllers.lock().insert(kind, passes.clone());
        passes
    }

    /// A client that counts what it is asked for.
    pub fn counted(self: &Arc<Self>, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let metrics = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, metrics) = (client.clone(), metrics.clone());
            async move {
                let Asked { verb, resource, .. } = Asked::of(&request);
                let answer = client.send(request).await;
                let code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
                *metrics.requests.lock().entry((verb, resource, code)).or_default() += 1;
                answer.map_err(BoxError::from)
            }
        });
        Client::new(service, namespace)
    }

    /// Everything, in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let controllers = self.controllers.lock();
        heading(&mut text, "reconcile_total", "counter", "Passes over objects, by how they ended.");
        for (kind, passes) in controllers.iter() {
            for (result, count) in [("success", &passes.succeeded), ("error", &passes.failed)] {
                let count = count.load(Ordering::Relaxed);
                let _ = writeln!(
                    text,
                    "skep_operator_reconcile_total{{controller=\"{kind}\",result=\"{result}\"}} {count}"
                );
            }
        }
        heading(&mut text, "reconcile_duration_seconds", "histogram", "How long passes take.");
        for (kind, passes) in controllers.iter() {
            passes.histogram(kind, &mut text);
        }
        heading(&mut text, "queue_depth", "gauge", "Objects that wait for a pass, now or at a later time.");
        for (kind, passes) in controllers.iter() {
            let _ = writeln!(text, "skep_operator_queue_depth{{controller=\"{kind}\"}} {}", passes.queue.len());
        }
        heading(&mut text, "api_requests_total", "counter", "Requests to the API server; code 0 had no answer.");
        for ((verb, resource, code), count) in self.requests.lock().iter() {
            let labels = format!("verb=\"{verb}\",resource=\"{resource}\",code=\"{code}\"");
            let _ = writeln!(text, "skep_operator_api_requests_total{{{labels}}} {count}");
        }
        text
    }
}

impl Passes {
    fn histogram(&self, kind: &str, text: &mut String) {
        let name = "skep_operator_reconcile_duration_seconds";
        let total = self.succeeded.load(Ordering::Relaxed) + self.failed.load(Ordering::Relaxed);
        for (bound, bucket) in BOUNDS.iter().zip(&self.buckets) {
            let count = bucket.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}_bucket{{controller=\"{kind}\",le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(text, "{name}_bucket{{controller=\"{kind}\",le=\"+Inf\"}} {total}");
        let sum = Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(text, "{name}_sum{{controller=\"{kind}\"}} {sum}");
        let _ = writeln!(text, "{name}_count{{controller=\"{kind}\"}} {total}");
    }
}

fn heading(text: &mut String, name: &str, type_: &str, help: &str) {
    let _ = writeln!(text, "# HELP skep_operator_{name} {help}\n# TYPE skep_operator_{name} {type_}");
}

/// What a request asks for, in the words in which rights are given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub verb: &'static str,
    /// The API group; that of the oldest kinds has no name.
    pub group: String,
    /// The resource with its subresource.
    pub resource: String,
}

impl Asked {
    /// Reads method and address of a request.
    pub fn of<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        // `api/v1/…` or `apis/GROUP/VERSION/…`.
        let group = if parts.next() == Some("apis") { parts.next().unwrap_or_default() } else { "" };
        let mut parts = parts.skip(1).peekable();
        let mut rest: Vec<&str> = Vec::new();
        if parts.peek() == Some(&"namespaces") {
            let place: Vec<&str> = parts.collect();
            // A namespace is an object itself when nothing comes after its name.
            rest.extend(if place.len() > 2 { &place[2..] } else { &place[..] });
        } else {
            rest.extend(parts);
        }
        let resource = match rest.as_slice() {
            [resource, _, subresource, ..] => format!("{resource}/{subresource}"),
            [resource, ..] => (*resource).to_owned(),
            [] => path.to_owned(),
        };
        let is_watch = request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"));
        let verb = match (request.method(), rest.len()) {
            (&Method::GET, _) if is_watch => "watch",
            (&Method::GET, 0..2) => "list",
            (&Method::GET, _) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, 0..2) => "deletecollection",
            (&Method::DELETE, _) => "delete",
            _ => "other",
        };
        Self { verb, group: group.to_owned(), resource }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_names() {
        let ours = "toolhive.stacklok.dev";
        for (method, uri, verb, group, resource) in [
            ("GET", "/api/v1/pods?watch=true&x=y", "watch", "", "pods"),
            ("GET", "/api/v1/namespaces/ns/pods", "list", "", "pods"),
            ("GET", "/api/v1/namespaces/ns", "get", "", "namespaces"),
            ("GET", "/api/v1/namespaces/ns/secrets/s", "get", "", "secrets"),
            ("PATCH", "/apis/apps/v1/namespaces/ns/deployments/d", "patch", "apps", "deployments"),
            (
                "PATCH",
                "/apis/toolhive.stacklok.dev/v1beta1/namespaces/ns/mcpservers/s/status",
                "patch",
                ours,
                "mcpservers/status",
            ),
            ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events", "create", "events.k8s.io", "events"),
            ("DELETE", "/apis/apps/v1/namespaces/ns/statefulsets/s", "delete", "apps", "statefulsets"),
        ] {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            let expected = Asked { verb, group: group.to_owned(), resource: resource.to_owned() };
            assert_eq!(Asked::of(&request), expected, "{method} {uri}");
        }
    }

    #[test]
    fn passes_are_counted() {
        let metrics = Metrics::default();
        let queue = Arc::new(Queue::default());
        queue.add(Key::new("ns", "waiting"));
        let passes = metrics.controller("MCPServer", queue);
        passes.passed(Duration::from_millis(10), true);
        passes.passed(Duration::from_secs(2), false);
        let text = metrics.text();
        for line in [
            "skep_operator_reconcile_total{controller=\"MCPServer\",result=\"success\"} 1",
            "skep_operator_reconcile_total{controller=\"MCPServer\",result=\"error\"} 1",
            "skep_operator_reconcile_duration_seconds_bucket{controller=\"MCPServer\",le=\"0.02\"} 1",
            "skep_operator_reconcile_duration_seconds_bucket{controller=\"MCPServer\",le=\"5\"} 2",
            "skep_operator_reconcile_duration_seconds_sum{controller=\"MCPServer\"} 2.01",
            "skep_operator_queue_depth{controller=\"MCPServer\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
