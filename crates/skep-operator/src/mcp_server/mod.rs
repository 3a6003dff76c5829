//! The controller of MCPServer: a proxy in front of a server that the proxy's runner starts.

mod advice;
mod backend;
mod finalize;
mod phase;
mod restart;
mod verify;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::ResourceExt as _;
use serde_json::Value;
use skep_api::conditions::types;
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPServer;
use skep_api::kinds::mcp_server::MCPServerPhase;
use skep_api::names::{finalizers, labels, mcp_server};
use skep_control::{Key, Next};

use self::phase::Observed;
use self::verify::Verifier;
use crate::cluster::Cluster;
use crate::controller::Reconcile;
use crate::events::Recorder;
use crate::failure::Failure;
use crate::handshake::Handshake;
use crate::proxy::build::{RECHECK, Stop, build};
use crate::proxy::report::Report;
use crate::proxy::setbacks::Setbacks;
use crate::proxy::status::{Standing, WorkloadStatus as _, conclude};
use crate::proxy::{Proxied as _, checks, notes};
use crate::settings::ProxySettings;
use crate::write::{Writer, has_finalizer};

/// The controller of MCPServer.
#[derive(Debug)]
pub struct MCPServerController {
    cluster: Arc<Cluster>,
    recorder: Recorder,
    settings: ProxySettings,
    verifier: Option<Verifier>,
    setbacks: Setbacks,
}

impl MCPServerController {
    /// Servers are verified only by somebody who speaks MCP.
    pub fn new(
        cluster: Arc<Cluster>,
        recorder: Recorder,
        settings: ProxySettings,
        handshake: Option<Arc<dyn Handshake>>,
    ) -> Self {
        let verifier = handshake.map(|handshake| Verifier::new(cluster.clone(), handshake));
        Self { cluster, recorder, settings, verifier, setbacks: Setbacks::default() }
    }

    /// Says what can be said without looking at references.
    fn advise(&self, server: &MCPServer, report: &mut Report) {
        let common = server.common();
        checks::group(&self.cluster, common, report);
        checks::primary_upstream(common, MCPServer::DEFINITION.kind, report);
        report.say(advice::stdio_cap(&server.spec));
        checks::session_storage(common, report);
        report.say(advice::rate_limit(&server.spec));
    }

    fn observe(&self, server: &MCPServer) -> Observed {
        let (namespace, name) = (server.namespace().unwrap_or_default(), server.name_any());
        let deployment = self.cluster.child::<Deployment>(&deployment_of(server));
        let live = deployment.as_ref().and_then(|found| found.body());
        let pods = self.cluster.pods(&namespace, &labels::mcp_server(&name));
        let backend = Key::new(namespace.as_str(), mcp_server::stateful_set(&name));
        Observed {
            replicas: live.and_then(|live| live["spec"]["replicas"].as_i64()),
            pods: pods.iter().map(|pod| pod.class.clone()).collect(),
            has_backend: self.cluster.child::<StatefulSet>(&backend).is_some(),
            is_replaced: live.is_some_and(is_replaced),
        }
    }

    /// What there is to say about a server whose objects are all in place, and when to look at it again.
    fn judge(&self, server: &MCPServer, report: &mut Report) -> (Standing<MCPServerPhase>, i32, Next) {
        let observed = self.observe(server);
        let (standing, running) = phase::phase(&observed, &deployment_of(server));
        let next = match &self.verifier {
            Some(verifier) if standing.phase == MCPServerPhase::Ready => {
                verifier.verify(server, observed.is_replaced, report)
            }
            Some(verifier) => {
                verifier.forget(&Key::of(server));
                Next::Rest
            }
            None => Next::Rest,
        };
        (standing, running, next)
    }
}

/// The Deployment of a server's proxies.
fn deployment_of(server: &MCPServer) -> Key {
    Key::new(server.namespace().unwrap_or_default(), mcp_server::deployment(&server.name_any()))
}

/// Whether pods of an older template of a Deployment are still about.
fn is_replaced(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let count = |name: &str| status[name].as_i64().unwrap_or_default();
    status["observedGeneration"] != deployment["metadata"]["generation"]
        || count("updatedReplicas") < count("replicas").max(deployment["spec"]["replicas"].as_i64().unwrap_or_default())
}

impl Reconcile for MCPServerController {
    type Kind = MCPServer;
    const VERDICT: &'static str = types::READY;
    const FAILED: Option<&'static str> = Some("Failed");

    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn forget(&self, key: &Key) {
        self.setbacks.forget(key);
        if let Some(verifier) = &self.verifier {
            verifier.forget(key);
        }
    }

    async fn reconcile(&self, server: &MCPServer, writer: &Writer<MCPServer>) -> Result<Next, Failure> {
        if server.metadata.deletion_timestamp.is_some() {
            self.forget(&Key::of(server));
            return finalize::finalize(&self.cluster, server, writer).await;
        }
        if !has_finalizer(server, finalizers::MCP_SERVER) {
            // The write wakes this controller again, with the object as it is then.
            writer.add_finalizer(server, finalizers::MCP_SERVER).await?;
            return Ok(Next::Rest);
        }
        if restart::restart(&self.cluster, server, writer).await? {
            return Ok(Next::Rest);
        }
        let mut report = Report::default();
        let mut status = server.status.clone().unwrap_or_default();
        status.selector = Some(labels::selector_text(&labels::mcp_server(&server.name_any())));
        let mut hashes = status.hashes();
        self.advise(server, &mut report);
        let built = Box::pin(build(&self.cluster, &self.settings, server, &mut hashes, &mut report)).await;
        let built = built.and_then(|()| backend::check(&self.cluster, server));
        let (outcome, next) = match self.setbacks.judge(Key::of(server), built) {
            Ok(()) => {
                let (standing, running, verified) = self.judge(server, &mut report);
                status.ready_replicas = Some(running);
                let healed = backend::heal(&self.cluster, server).await;
                (Ok(standing), healed.map(|healed| sooner(healed, verified)))
            }
            Err(Stop::Told(incomplete, next)) => (Err(incomplete), next),
            Err(Stop::Interrupted(_, failure)) => return Err(failure),
            Err(Stop::Wait) => return Ok(Next::After(RECHECK)),
        };
        let status = conclude(server, status, outcome, hashes, report);
        writer.status(server, &status).await?;
        let before = server.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        notes::pod_template(&self.recorder, server, before, &status.conditions);
        next
    }
}

/// What comes first.
fn sooner(one: Next, other: Next) -> Next {
    match (one, other) {
        (Next::After(one), Next::After(other)) => Next::After(one.min(other)),
        (Next::Rest, other) => other,
        (one, Next::Rest) => one,
    }
}
