//! Probes: is a container up, is it ready, is it alive.

mod http;
mod tcp;
mod verdict;

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub(crate) use verdict::Verdict;

/// What a probe asks for. Ports are numbers, names resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Http(http::Request),
    Tcp {
        host: String,
        port: u16,
    },
    Exec(Vec<String>),
    /// A kind of probe that this node cannot carry out; it fails with this reason.
    Unsupported(&'static str),
}

/// A probe, with the defaults of the API server filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) question: Question,
    pub(crate) initial_delay: Duration,
    pub(crate) period: Duration,
    pub(crate) timeout: Duration,
    pub(crate) successes: u32,
    pub(crate) failures: u32,
    /// The time a container gets to end when this probe has given up on it.
    pub(crate) grace: Option<i64>,
}

/// A port that a probe or hook names and the container does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't find port: {port:?} on container {container}")]
pub(crate) struct UnknownPort {
    port: String,
    container: String,
}

impl Plan {
    pub(crate) fn new(probe: &Probe, container: &Container, address: IpAddr) -> Result<Self, UnknownPort> {
        let seconds = |value: Option<i32>, default: u64| {
            Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
        };
        let times = |value: Option<i32>, default: u32| {
            value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0).unwrap_or(default)
        };
        let question = if let Some(action) = &probe.http_get {
            Question::Http(http::Request::new(action, container, address)?)
        } else if let Some(action) = &probe.tcp_socket {
            let host = action.host.clone().filter(|host| !host.is_empty()).unwrap_or_else(|| address.to_string());
            Question::Tcp { host, port: port_of(&action.port, container)? }
        } else if let Some(action) = &probe.exec {
            Question::Exec(action.command.clone().unwrap_or_default())
        } else {
            Question::Unsupported("gRPC probes are not supported by this node: use an HTTP, TCP or exec probe")
        };
        Ok(Self {
            question,
            initial_delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10).max(Duration::from_secs(1)),
            timeout: seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1)),
            successes: times(probe.success_threshold, 1),
            failures: times(probe.failure_threshold, 3),
            grace: probe.termination_grace_period_seconds,
        })
    }
}

/// The number of a port that may be given by the name the container has for it.
pub(crate) fn port_of(port: &IntOrString, container: &Container) -> Result<u16, UnknownPort> {
    let unknown = || UnknownPort {
        port: match port {
            IntOrString::Int(number) => number.to_string(),
            IntOrString::String(name) => name.clone(),
        },
        container: container.name.clone(),
    };
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())
        }
    };
    number.and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0).ok_or_else(unknown)
}

/// The answer to a question that goes over the network: `Err` with the reason when it is no.
pub(crate) async fn ask(question: &Question, timeout: Duration) -> Result<(), String> {
    match question {
        Question::Http(request) => http::ask(request, timeout).await,
        Question::Tcp { host, port } => tcp::ask(host, *port, timeout).await,
        Question::Exec(_) => Err("this question is for the container".to_owned()),
        Question::Unsupported(reason) => Err((*reason).to_owned()),
    }
}

pub(crate) use http::Request as HttpRequest;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container() -> Container {
        serde_json::from_value(json!({"name": "c", "ports": [{"name": "web", "containerPort": 8080}]})).unwrap()
    }

    fn plan(probe: serde_json::Value) -> Result<Plan, String> {
        let probe: Probe = serde_json::from_value(probe).unwrap();
        Plan::new(&probe, &container(), [10, 244, 0, 7].into()).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_and_named_ports() {
        let plan = plan(json!({"tcpSocket": {"port": "web"}, "initialDelaySeconds": 2})).unwrap();
        assert_eq!(plan.question, Question::Tcp { host: "10.244.0.7".into(), port: 8080 });
        assert_eq!((plan.initial_delay.as_secs(), plan.period.as_secs(), plan.timeout.as_secs()), (2, 10, 1));
        assert_eq!((plan.successes, plan.failures), (1, 3));
    }

    #[test]
    fn unknown_ports_are_named() {
        let error = plan(json!({"tcpSocket": {"port": "absent"}})).unwrap_err();
        assert_eq!(error, "couldn't find port: \"absent\" on container c");
        assert!(plan(json!({"tcpSocket": {"port": 70000}})).is_err());
    }

    #[test]
    fn every_kind_of_question() {
        assert_eq!(
            plan(json!({"exec": {"command": ["a", "b"]}})).unwrap().question,
            Question::Exec(vec!["a".into(), "b".into()])
        );
        assert!(matches!(plan(json!({"grpc": {"port": 1}})).unwrap().question, Question::Unsupported(_)));
        assert!(matches!(plan(json!({"httpGet": {"port": 1}})).unwrap().question, Question::Http(_)));
    }
}
