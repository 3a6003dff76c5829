//! The life of a remote proxy in one word, from its pods.

use skep_api::conditions::{Statement, reasons, types};
use skep_api::kinds::mcp_remote_proxy::MCPRemoteProxyPhase;

use crate::proxy::status::Standing;

/// The phase of a proxy, from `status.phase` of its pods; those on their way out do not count.
pub fn phase<'a>(pods: impl IntoIterator<Item = &'a str>) -> Standing<MCPRemoteProxyPhase> {
    use MCPRemoteProxyPhase::{Failed, Pending, Ready};
    let (mut running, mut pending, mut failed) = (false, false, false);
    for pod in pods {
        match pod {
            "Running" | "Succeeded" => running = true,
            "Failed" => failed = true,
            _ => pending = true,
        }
    }
    let (phase, message, verdict) = match (running, pending, failed) {
        (true, ..) => (Ready, "Remote proxy is running", "Deployment is ready and running"),
        (_, true, _) => (Pending, "Remote proxy is starting", "Deployment is not yet ready"),
        (.., true) => (Failed, "Remote proxy failed to start", "Deployment failed"),
        _ => (Pending, "No pods found for remote proxy", "No pods found"),
    };
    let verdict = match phase {
        Ready => Statement::holds(types::READY, reasons::DEPLOYMENT_READY, verdict),
        _ => Statement::fails(types::READY, reasons::DEPLOYMENT_NOT_READY, verdict),
    };
    Standing { phase, message: message.to_owned(), verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_pods() {
        use MCPRemoteProxyPhase::{Failed, Pending, Ready};
        for (pods, expected) in [
            (&[][..], (Pending, "No pods found for remote proxy")),
            (&["Running", "Failed"], (Ready, "Remote proxy is running")),
            (&["Pending", "Failed"], (Pending, "Remote proxy is starting")),
            (&["Unknown"], (Pending, "Remote proxy is starting")),
            (&["Failed"], (Failed, "Remote proxy failed to start")),
        ] {
            let found = phase(pods.iter().copied());
            assert_eq!((found.phase, found.message.as_str()), expected, "{pods:?}");
        }
    }
}
