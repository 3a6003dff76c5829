//! The controller of MCPRemoteProxy: a proxy in front of a server somewhere else.

mod address;
mod phase;
mod validate;

use std::sync::Arc;

use skep_api::conditions::{Statement, reasons, types};
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPRemoteProxy;
use skep_api::names::{events, labels};
use skep_control::{Key, Next};

use self::validate::{Wrong, validate};
use crate::cluster::Cluster;
use crate::controller::Reconcile;
use crate::events::{Note, Recorder};
use crate::failure::Failure;
use crate::proxy::build::{RECHECK, Stop, build};
use crate::proxy::hashes::Hashes;
use crate::proxy::report::Report;
use crate::proxy::setbacks::Setbacks;
use crate::proxy::status::{WorkloadStatus as _, conclude};
use crate::proxy::{Proxied as _, checks, notes};
use crate::settings::ProxySettings;
use crate::write::Writer;

/// The controller of MCPRemoteProxy.
#[derive(Debug)]
pub struct MCPRemoteProxyController {
    cluster: Arc<Cluster>,
    recorder: Recorder,
    settings: ProxySettings,
    setbacks: Setbacks,
}

impl MCPRemoteProxyController {
    pub fn new(cluster: Arc<Cluster>, recorder: Recorder, settings: ProxySettings) -> Self {
        Self { cluster, recorder, settings, setbacks: Setbacks::default() }
    }

    /// Validates the proxy and brings everything that belongs to it to its desired state.
    async fn complete(&self, proxy: &MCPRemoteProxy, hashes: &mut Hashes, report: &mut Report) -> Result<(), Stop> {
        let interrupted = |failure| Stop::interrupted(format!("Validation failed: {failure}"), failure);
        if let Err(wrong) = validate(&self.cluster, proxy).await.map_err(interrupted)? {
            return Err(refuse(&wrong, report));
        }
        let passed = "All configuration validations passed";
        report.say(Statement::holds(types::CONFIGURATION_VALID, reasons::CONFIGURATION_VALID, passed));
        let common = proxy.common();
        checks::group(&self.cluster, common, report);
        checks::primary_upstream(common, MCPRemoteProxy::DEFINITION.kind, report);
        Box::pin(build(&self.cluster, &self.settings, proxy, hashes, report)).await
    }

    /// Tells once what is wrong.
    fn tell(&self, proxy: &MCPRemoteProxy, after: &[skep_api::conditions::Condition]) {
        let before = proxy.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        notes::pod_template(&self.recorder, proxy, before, after);
        if let Some(condition) = notes::turned_false(before, after, types::CONFIGURATION_VALID) {
            let (reason, note) = (condition.reason.clone(), condition.message.clone());
            self.recorder.record(proxy, Note::warning(reason, events::actions::VALIDATE_SPEC, note));
        }
    }
}

fn refuse(wrong: &Wrong, report: &mut Report) -> Stop {
    report.say(Statement::fails(types::CONFIGURATION_VALID, wrong.reason, wrong.text.as_str()));
    report.say(Statement::fails(types::AUTH_CONFIGURED, reasons::AUTH_INVALID, wrong.text.as_str()));
    let text = format!("Validation failed: {}", wrong.text);
    if wrong.is_watched { Stop::told(reasons::NOT_READY, text, Next::Rest) } else { Stop::told_now_and_then(text) }
}

impl Reconcile for MCPRemoteProxyController {
    type Kind = MCPRemoteProxy;
    const VERDICT: &'static str = types::READY;
    const FAILED: Option<&'static str> = Some("Failed");

    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn forget(&self, key: &Key) {
        self.setbacks.forget(key);
    }

    async fn reconcile(&self, proxy: &MCPRemoteProxy, writer: &Writer<MCPRemoteProxy>) -> Result<Next, Failure> {
        if proxy.metadata.deletion_timestamp.is_some() {
            // Everything goes by garbage collection.
            return Ok(Next::Rest);
        }
        let mut report = Report::default();
        let before = proxy.status.clone().unwrap_or_default();
        let mut hashes = before.hashes();
        checks::session_storage(proxy.common(), &mut report);
        let built = self.complete(proxy, &mut hashes, &mut report).await;
        let (outcome, next) = match self.setbacks.judge(Key::of(proxy), built) {
            Ok(()) => {
                let common = proxy.common();
                let pods = self.cluster.pods(common.namespace, &labels::mcp_remote_proxy(common.name));
                let alive = pods.iter().filter(|pod| !pod.is_terminating()).map(|pod| pod.phase.as_str());
                (Ok(phase::phase(alive)), Ok(Next::Rest))
            }
            Err(Stop::Told(incomplete, next)) => (Err(incomplete), next),
            Err(Stop::Interrupted(_, failure)) => return Err(failure),
            Err(Stop::Wait) => return Ok(Next::After(RECHECK)),
        };
        let status = conclude(proxy, before, outcome, hashes, report);
        writer.status(proxy, &status).await?;
        self.tell(proxy, &status.conditions);
        next
    }
}
