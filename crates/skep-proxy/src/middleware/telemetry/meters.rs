//! The metrics: their names, and what is counted in them.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use super::ended::{Ended, Kinds, Operation};
use super::era;
use super::series::{Counter, Family, Histogram, Label, Level, Point, Series, shortened};
use crate::eras::verdict::Eras;
use crate::middleware::rate_limit::{Check, Verdict};

/// How a metric is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    UpDown,
    Histogram,
}

/// What a metric is called.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) description: &'static str,
    pub(super) kind: Kind,
}

pub(super) const SECONDS: &str = "s";

pub(super) const fn counter(name: &'static str, description: &'static str) -> Metric {
    Metric { name, unit: "", description, kind: Kind::Counter }
}

const fn histogram(name: &'static str, description: &'static str) -> Metric {
    Metric { name, unit: SECONDS, description, kind: Kind::Histogram }
}

const REQUESTS: Metric = counter("toolhive_mcp_requests", "Requests");
const DURATION: Metric = histogram("toolhive_mcp_request_duration", "How long requests took, streams included");
const OPERATIONS: Metric = histogram("mcp.server.operation.duration", "How long operations of the server took");
const TOOL_CALLS: Metric = counter("toolhive_mcp_tool_calls", "Calls of tools");
const CONNECTIONS: Metric = Metric {
    name: "toolhive_mcp_active_connections",
    unit: "",
    description: "Requests and streams that are under way",
    kind: Kind::UpDown,
};
const DECISIONS: Metric = counter("toolhive_rate_limit_decisions", "What buckets have said about calls");
const REDIS_ERRORS: Metric = counter("toolhive_rate_limit_redis_errors", "Calls about which Redis could not be asked");
const FAIL_OPEN: Metric =
    counter("toolhive_rate_limit_fail_open", "Calls that passed because Redis could not be asked");
const CHECK_LATENCY: Metric = histogram("toolhive_rate_limit_check_latency", "How long Redis took");

/// What a metric says at some moment.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) metric: &'static Metric,
    pub(super) points: Vec<(Arc<[Label<'static>]>, Point)>,
}

/// The series that count requests of one kind.
#[derive(Debug)]
pub(super) struct Counted {
    requests: Arc<Counter>,
    duration: Arc<Histogram>,
    operations: Option<Arc<Histogram>>,
    tool_calls: Option<Arc<Counter>>,
}

/// Everything that is counted.
#[derive(Debug)]
pub(super) struct Meters {
    server: String,
    transport: String,
    pub(super) began: SystemTime,
    kinds: Kinds,
    /// Requests and streams, of `connections`.
    under_way: [OnceLock<Arc<Level>>; 2],
    requests: Family<Counter>,
    duration: Family<Histogram>,
    operations: Family<Histogram>,
    tool_calls: Family<Counter>,
    connections: Family<Level>,
    decisions: Family<Counter>,
    redis_errors: Family<Counter>,
    fail_open: Family<Counter>,
    check_latency: Family<Histogram>,
    /// What is known about the era of the server.
    eras: OnceLock<Arc<Eras>>,
}

impl Meters {
    pub(super) fn new(server: &str, transport: &str) -> Self {
        Self {
            server: server.to_owned(),
            transport: transport.to_owned(),
            began: SystemTime::now(),
            kinds: Kinds::default(),
            under_way: Default::default(),
            requests: Family::default(),
            duration: Family::default(),
            operations: Family::default(),
            tool_calls: Family::default(),
            connections: Family::default(),
            decisions: Family::default(),
            redis_errors: Family::default(),
            fail_open: Family::default(),
            check_latency: Family::default(),
            eras: OnceLock::new(),
        }
    }

    /// Tells what is known about the era of the server, too.
    pub(super) fn watch(&self, eras: &Arc<Eras>) {
        // A proxy has one server.
        let _ = self.eras.set(Arc::clone(eras));
    }

    fn place(&self) -> [Label<'_>; 2] {
        [("server", Cow::Borrowed(&*self.server)), ("transport", Cow::Borrowed(&*self.transport))]
    }

    /// A request or a stream that is under way.
    pub(super) fn connection(&self, is_stream: bool) -> Active {
        let level = self.under_way[usize::from(is_stream)].get_or_init(|| {
            let mut labels = self.place().to_vec();
            if is_stream {
                labels.push(("connection_type", Cow::Borrowed("sse")));
            }
            self.connections.of(&labels)
        });
        level.add(1);
        Active(Arc::clone(level))
    }

    /// A stream of HTTP+SSE that has begun.
    pub(super) fn stream_opened(&self, verb: &str) {
        let [server, transport] = self.place();
        let labels = [
            ("method", shortened(verb)),
            ("status_code", Cow::Borrowed("200")),
            ("status", Cow::Borrowed("success")),
            ("mcp_method", Cow::Borrowed("sse_connection")),
            server,
            transport,
        ];
        self.requests.of(&labels).increment();
    }

    /// A request that has ended.
    pub(super) fn ended(&self, ended: &Ended<'_>, took: Duration) {
        let counted = self.kinds.of(ended, || self.counted(ended));
        counted.requests.increment();
        counted.duration.record(took);
        if let Some(operations) = &counted.operations {
            operations.record(took);
        }
        if let Some(tool_calls) = &counted.tool_calls {
            tool_calls.increment();
        }
    }

    /// Where requests of a kind are counted.
    fn counted(&self, ended: &Ended<'_>) -> Counted {
        let [server, transport] = self.place();
        let operation = ended.operation.as_ref();
        let code = ended.status.to_string();
        let status = Cow::Borrowed(if ended.status >= 400 { "error" } else { "success" });
        let subject = operation.and_then(|operation| operation.subject.as_deref()).unwrap_or_default();
        let labels = [
            ("method", shortened(&ended.verb)),
            ("status_code", Cow::Borrowed(&*code)),
            ("status", status.clone()),
            ("mcp_method", shortened(operation.map_or("unknown", |operation| &operation.method))),
            ("mcp_resource_id", shortened(subject)),
            server.clone(),
            transport,
        ];
        let tool = operation.and_then(|operation| operation.tool.as_deref()).filter(|tool| !tool.is_empty());
        Counted {
            requests: self.requests.of(&labels),
            duration: self.duration.of(&labels),
            operations: operation.map(|operation| self.operation(ended, operation, &code)),
            tool_calls: tool.map(|tool| self.tool_calls.of(&[server, ("tool", shortened(tool)), ("status", status)])),
        }
    }

    fn operation(&self, ended: &Ended<'_>, operation: &Operation<'_>, code: &str) -> Arc<Histogram> {
        let mut labels = vec![
            ("mcp.method.name", shortened(&operation.method)),
            ("jsonrpc.protocol.version", Cow::Borrowed("2.0")),
            ("network.transport", Cow::Borrowed(network(&self.transport))),
        ];
        if let Some(version) = ended.version {
            labels.push(("network.protocol.name", Cow::Borrowed("http")));
            labels.push(("network.protocol.version", Cow::Borrowed(version)));
        }
        if ended.status >= 500 {
            labels.push(("error.type", Cow::Borrowed(code)));
        }
        if let Some(tool) = operation.tool.as_deref() {
            labels.push(("gen_ai.operation.name", Cow::Borrowed("execute_tool")));
            labels.push(("gen_ai.tool.name", shortened(tool)));
        }
        if let Some(prompt) = operation.prompt.as_deref() {
            labels.push(("gen_ai.prompt.name", shortened(prompt)));
        }
        self.operations.of(&labels)
    }

    /// A call whose limits were looked at.
    pub(super) fn checked(&self, check: &Check) {
        let namespace: Label<'_> = ("namespace", Cow::Borrowed(&*check.limits.namespace));
        let server: Label<'_> = ("server", Cow::Borrowed(&*self.server));
        let owner = [namespace.clone(), server.clone()];
        self.check_latency.of(&owner).record(check.took);
        let (decision, scopes) = match &check.verdict {
            Verdict::Allowed(scopes) => ("allowed", scopes.as_slice()),
            Verdict::Rejected(scope) => ("rejected", std::slice::from_ref(scope)),
            Verdict::Unknown(kind) => {
                self.fail_open.of(&owner).increment();
                return self.redis_errors.of(&[namespace, server, ("error_type", Cow::Borrowed(kind))]).increment();
            }
        };
        for scope in scopes {
            let labels = [
                namespace.clone(),
                server.clone(),
                ("decision", Cow::Borrowed(decision)),
                ("scope", Cow::Borrowed(scope.scope)),
                ("operation_type", Cow::Borrowed(scope.operation)),
            ];
            self.decisions.of(&labels).increment();
        }
    }

    /// What all of them say now. What was never counted says nothing.
    pub(super) fn read(&self) -> Vec<Reading> {
        let readings = [
            of(&REQUESTS, &self.requests),
            of(&DURATION, &self.duration),
            of(&OPERATIONS, &self.operations),
            of(&TOOL_CALLS, &self.tool_calls),
            of(&CONNECTIONS, &self.connections),
            of(&DECISIONS, &self.decisions),
            of(&REDIS_ERRORS, &self.redis_errors),
            of(&FAIL_OPEN, &self.fail_open),
            of(&CHECK_LATENCY, &self.check_latency),
        ];
        let era = self.eras.get().and_then(|eras| eras.status());
        let era = era.map(|status| era::readings(&status, &self.place())).into_iter().flatten();
        readings.into_iter().chain(era).filter(|reading| !reading.points.is_empty()).collect()
    }
}

fn of(metric: &'static Metric, family: &Family<impl Series>) -> Reading {
    Reading { metric, points: family.read() }
}

/// What messages travel by to the server.
pub(super) fn network(transport: &str) -> &'static str {
    if transport == "stdio" { "pipe" } else { "tcp" }
}

/// Something that is under way, until this is dropped.
#[derive(Debug)]
pub(super) struct Active(Arc<Level>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

#[cfg(test)]
mod tests;
