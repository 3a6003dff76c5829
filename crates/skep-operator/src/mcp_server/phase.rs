//! The life of a server in one word, from the pods of its proxy.

use skep_api::conditions::{Statement, reasons, types};
use skep_api::kinds::mcp_server::MCPServerPhase;

use crate::cluster::PodClass;

/// What is observed of a server that has nothing wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// `spec.replicas` of the Deployment, if it exists.
    pub replicas: Option<i64>,
    /// How the pods of the proxy fare.
    pub pods: Vec<PodClass>,
    /// Whether the StatefulSet of the backend exists.
    pub has_backend: bool,
}

/// A phase with the words for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub phase: MCPServerPhase,
    pub message: String,
    pub ready_replicas: i32,
}

impl Standing {
    fn new(phase: MCPServerPhase, message: impl Into<String>, ready_replicas: i32) -> Self {
        Self { phase, message: message.into(), ready_replicas }
    }

    /// The condition that goes with it.
    pub fn verdict(&self) -> Statement {
        match self.phase {
            MCPServerPhase::Ready => Statement::holds(types::READY, reasons::READY, self.message.as_str()),
            _ => Statement::fails(types::READY, reasons::NOT_READY, self.message.as_str()),
        }
    }
}

/// The phase of a server whose objects are all in place.
pub fn phase(observed: &Observed) -> Standing {
    use MCPServerPhase::{Failed, Pending, Ready, Stopped};
    if observed.replicas == Some(0) {
        return Standing::new(Stopped, "MCP server is stopped (scaled to zero)", 0);
    }
    if observed.pods.is_empty() {
        return Standing::new(Pending, "MCP server is being created", 0);
    }
    let count = |wanted: fn(&PodClass) -> bool| observed.pods.iter().filter(|pod| wanted(pod)).count();
    let running = i32::try_from(count(|pod| *pod == PodClass::Running)).unwrap_or(i32::MAX);
    if running > 0 && !observed.has_backend {
        return Standing::new(Pending, "MCP server proxy is running; recreating missing workload StatefulSet", running);
    }
    if running > 0 {
        return Standing::new(Ready, "MCP server is running", running);
    }
    let failed = observed.pods.iter().find_map(|pod| match pod {
        PodClass::Failed(reason) => Some(reason.as_deref()),
        _ => None,
    });
    match failed {
        Some(Some(reason)) => Standing::new(Failed, format!("MCP server pod failed: {reason}"), 0),
        Some(None) => Standing::new(Failed, "MCP server pod failed", 0),
        None if count(|pod| *pod == PodClass::Pending) > 0 => Standing::new(Pending, "MCP server is starting", 0),
        None => Standing::new(Pending, "No healthy pods found", 0),
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
            let found = phase(&Observed { replicas: Some(1), pods: pods.clone(), has_backend });
            assert_eq!((found.phase, found.message.as_str(), found.ready_replicas), expected, "{pods:?}");
        }
        let stopped = phase(&Observed { replicas: Some(0), pods: vec![Running], has_backend: true });
        assert_eq!((stopped.phase, stopped.ready_replicas), (Stopped, 0));
    }
}
