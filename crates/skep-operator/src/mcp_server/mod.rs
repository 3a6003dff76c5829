//! The controller of MCPServer: a proxy in front of a server that the proxy's runner starts.

mod advice;
mod backend;
mod finalize;
mod phase;
mod restart;
mod status;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::ResourceExt as _;
use skep_api::conditions::types;
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPServer;
use skep_api::names::{finalizers, labels, mcp_server};
use skep_control::{Key, Next};

use self::phase::Observed;
use crate::cluster::Cluster;
use crate::controller::Reconcile;
use crate::events::Recorder;
use crate::failure::Failure;
use crate::proxy::build::{Stop, build};
use crate::proxy::hashes::KeepsHashes;
use crate::proxy::report::Report;
use crate::proxy::{Proxied as _, checks, notes};
use crate::settings::ProxySettings;
use crate::write::{Writer, has_finalizer};

/// The controller of MCPServer.
#[derive(Debug)]
pub struct MCPServerController {
    cluster: Arc<Cluster>,
    recorder: Recorder,
    settings: ProxySettings,
}

impl MCPServerController {
    pub fn new(cluster: Arc<Cluster>, recorder: Recorder, settings: ProxySettings) -> Self {
        Self { cluster, recorder, settings }
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
        let deployment = Key::new(namespace.as_str(), mcp_server::deployment(&name));
        let live = self.cluster.child::<Deployment>(&deployment).and_then(|found| found.body());
        let pods = self.cluster.pods(&namespace, &labels::mcp_server(&name));
        let backend = Key::new(namespace.as_str(), mcp_server::stateful_set(&name));
        Observed {
            replicas: live.and_then(|live| live["spec"]["replicas"].as_i64()),
            pods: pods.iter().map(|pod| pod.class.clone()).collect(),
            has_backend: self.cluster.child::<StatefulSet>(&backend).is_some(),
        }
    }
}

impl Reconcile for MCPServerController {
    type Kind = MCPServer;
    const VERDICT: &'static str = types::READY;

    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    async fn reconcile(&self, server: &MCPServer, writer: &Writer<MCPServer>) -> Result<Next, Failure> {
        if server.metadata.deletion_timestamp.is_some() {
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
        let mut hashes = server.status.as_ref().map(KeepsHashes::hashes).unwrap_or_default();
        self.advise(server, &mut report);
        let (outcome, next) =
            match Box::pin(build(&self.cluster, &self.settings, server, &mut hashes, &mut report)).await {
                Ok(()) => (Ok(phase::phase(&self.observe(server))), backend::heal(&self.cluster, server).await),
                Err(Stop::Told(incomplete, next)) => (Err(incomplete), next),
                Err(Stop::Interrupted(failure)) => return Err(failure),
                Err(Stop::Wait) => return Ok(Next::Rest),
            };
        let status = status::status(server, outcome, hashes, report);
        writer.status(server, &status).await?;
        let before = server.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        notes::pod_template(&self.recorder, server, before, &status.conditions);
        next
    }
}
