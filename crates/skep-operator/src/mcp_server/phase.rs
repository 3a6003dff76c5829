//! The life of a server in one word, from the pods of its proxy.

use skep_api::conditions::{Statement, reasons, types};
use skep_api::kinds::mcp_server::MCPServerPhase;
use skep_api::names::labels;
use skep_control::Key;

use crate::cluster::PodClass;
use crate::proxy::status::Standing;

/// What is observed of a server that has nothing wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// `spec.replicas` of the Deployment, if it exists.
    pub replicas: Option<i64>,
    /// How the pods of the proxy fare.
    pub pods: Vec<PodClass>,
    /// Whether the StatefulSet of the backend exists.
    pub has_backend: bool,
    /// Whether the proxy is being replaced by a newer one.
    pub is_replaced: bool,
}

fn standing(phase: MCPServerPhase, message: impl Into<String>) -> Standing<MCPServerPhase> {
    let message = message.into();
    let verdict = match phase {
        MCPServerPhase::Ready => Statement::holds(types::READY, reasons::READY, message.as_str()),
        _ => Statement::fails(types::READY, reasons::NOT_READY, message.as_str()),
    };
    Standing { phase, message, verdict }
}

/// As [`standing`], with where to look for the cause in the condition.
fn failed(message: &str, reason: &str, deployment: &Key) -> Standing<MCPServerPhase> {
    let Key { namespace, name } = deployment;
    let look = match reason {
        "CrashLoopBackOff" | "ContainerTerminated" => format!("logs deployment/{name}"),
        _ => format!("describe pods -l {}", labels::selector_text(&labels::mcp_server(name))),
    };
    let told = format!("{message}; see `kubectl -n {namespace} {look}`");
    let verdict = Statement::fails(types::READY, reasons::NOT_READY, told);
    Standing { verdict, ..standing(MCPServerPhase::Failed, message) }
}

/// Where a server stands whose objects are all in place, and how many of its proxies run. `deployment` is that of the proxies.
pub fn phase(observed: &Observed, deployment: &Key) -> (Standing<MCPServerPhase>, i32) {
    use MCPServerPhase::{Pending, Ready, Stopped};
    if observed.replicas == Some(0) {
        return (standing(Stopped, "MCP server is stopped (scaled to zero)"), 0);
    }
    if observed.pods.is_empty() {
        return (standing(Pending, "MCP server is being created"), 0);
    }
    let count = |wanted: fn(&PodClass) -> bool| observed.pods.iter().filter(|pod| wanted(pod)).count();
    let running = i32::try_from(count(|pod| *pod == PodClass::Running)).unwrap_or(i32::MAX);
    if running > 0 && !observed.has_backend {
        return (standing(Pending, "MCP server proxy is running; recreating missing workload StatefulSet"), running);
    }
    if running > 0 {
        return (standing(Ready, "MCP server is running"), running);
    }
    let failure = observed.pods.iter().find_map(|pod| match pod {
        PodClass::Failed(reason) => Some(reason.as_deref()),
        _ => None,
    });
    match failure {
        Some(Some(reason)) => (failed(&format!("MCP server pod failed: {reason}"), reason, deployment), 0),
        Some(None) => (failed("MCP server pod failed", "", deployment), 0),
        None if count(|pod| *pod == PodClass::Pending) > 0 => (standing(Pending, "MCP server is starting"), 0),
        None => (standing(Pending, "No healthy pods found"), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_pods() {
        use MCPServerPhase::{Failed, Pending, Ready, Stopped};
        use PodClass::{Running, Terminating};
        let crashed = || PodClass::Failed(Some("CrashLoopBackOff".to_owned()));
        let starting = || PodClass::Pending;
        for (pods, has_backend, expected) in [
            (vec![], true, (Pending, "MCP server is being created", 0)),
            (vec![Running, Running, crashed()], true, (Ready, "MCP server is running", 2)),
            (
                vec![Running],
                false,
                (Pending, "MCP server proxy is running; recreating missing workload StatefulSet", 1),
            ),
            (vec![starting(), crashed()], true, (Failed, "MCP server pod failed: CrashLoopBackOff", 0)),
            (vec![PodClass::Failed(None)], true, (Failed, "MCP server pod failed", 0)),
            (vec![starting(), Terminating], false, (Pending, "MCP server is starting", 0)),
            (vec![Terminating], true, (Pending, "No healthy pods found", 0)),
        ] {
            let (found, running) =
                phase(&Observed { replicas: Some(1), pods: pods.clone(), has_backend, is_replaced: false }, &key());
            assert_eq!((found.phase, found.message.as_str(), running), expected, "{pods:?}");
        }
        let stopped = phase(&Observed { replicas: Some(0), pods: vec![Running], ..Observed::default() }, &key());
        assert_eq!((stopped.0.phase, stopped.1), (Stopped, 0));
    }

    fn key() -> Key {
        Key::new("ns", "s")
    }

    #[test]
    fn a_failure_says_where_to_look() {
        let told = |reason: &str| {
            let pods = vec![PodClass::Failed(Some(reason.to_owned()))];
            phase(&Observed { replicas: Some(1), pods, ..Observed::default() }, &key()).0.verdict.message
        };
        let crashed = "MCP server pod failed: CrashLoopBackOff; see `kubectl -n ns logs deployment/s`";
        assert_eq!(told("CrashLoopBackOff"), crashed);
        assert!(told("InvalidImageName").contains("; see `kubectl -n ns describe pods -l app=mcpserver,"));
    }
}
