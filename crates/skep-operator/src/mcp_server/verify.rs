//! The condition `Verified`: whether an MCP handshake through the proxy succeeded.
//!
//! Nothing waits for it. Handshakes are made beside the passes, a few at a time, and what comes of one wakes the server.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use parking_lot::Mutex;
use skep_api::conditions::{self, ConditionStatus, Statement, reasons, types};
use skep_api::kinds::MCPServer;
use skep_api::names::mcp_server;
use skep_control::{Key, Next};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::handshake::{Handshake, Silence};
use crate::id::ObjectId;
use crate::proxy::Proxied as _;
use crate::proxy::report::Report;

/// How many servers are talked to at a time.
const MOST_AT_A_TIME: usize = 8;
/// How soon a server that did not answer is asked again.
const RECHECK: Duration = Duration::from_secs(15);

/// How a handshake ended.
type Answer = Result<usize, Silence>;

/// The handshakes of all servers.
#[derive(Debug)]
pub struct Verifier {
    handshake: Arc<dyn Handshake>,
    cluster: Arc<Cluster>,
    room: Arc<Semaphore>,
    begun: Arc<Mutex<HashMap<Key, Begun>>>,
    tasks: Mutex<JoinSet<()>>,
}

/// A handshake, from its beginning until its outcome is written down.
#[derive(Clone, Debug)]
struct Begun {
    generation: Option<i64>,
    at: Instant,
    /// Of the last one that ended.
    answer: Option<Answer>,
}

impl Begun {
    /// Whether it is time for another one: not while this one is under way.
    fn is_due(&self, now: Instant) -> bool {
        self.answer.is_some() && now.duration_since(self.at) >= RECHECK
    }
}

impl Verifier {
    pub fn new(cluster: Arc<Cluster>, handshake: Arc<dyn Handshake>) -> Self {
        let room = Arc::new(Semaphore::new(MOST_AT_A_TIME));
        Self { handshake, cluster, room, begun: Arc::default(), tasks: Mutex::default() }
    }

    /// Says what is known of a server that is ready, and begins a handshake where that is too little. While its proxy is
    /// being replaced, what was said stands.
    pub fn verify(&self, server: &MCPServer, is_replaced: bool, report: &mut Report) -> Next {
        let key = Key::of(server);
        let before = server.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let is_settled = conditions::find(before, types::VERIFIED).is_some_and(|found| {
            found.status != ConditionStatus::False && found.observed_generation == server.metadata.generation
        });
        if is_settled || is_replaced {
            self.forget(&key);
            report.keep(types::VERIFIED);
            return Next::Rest;
        }
        let Some(answer) = self.ask(key, server) else {
            report.keep(types::VERIFIED);
            return Next::Rest;
        };
        let next = if matches!(answer, Err(Silence::Failed(_))) { Next::After(RECHECK) } else { Next::Rest };
        report.say(statement(&server.name_any(), answer));
        next
    }

    /// Forgets a server that is not ready, or gone.
    pub fn forget(&self, key: &Key) {
        self.begun.lock().remove(key);
    }

    /// What came of the last handshake. One is begun if there was none, or if it is time for another.
    fn ask(&self, key: Key, server: &MCPServer) -> Option<Answer> {
        let generation = server.metadata.generation;
        let mut begun = self.begun.lock();
        let last = begun.get(&key).filter(|last| last.generation == generation).cloned();
        let answer = last.as_ref().and_then(|last| last.answer.clone());
        let is_due = last.is_none_or(|last| last.is_due(Instant::now()));
        if is_due && let Some(address) = self.address(server) {
            begun.insert(key.clone(), Begun { generation, at: Instant::now(), answer: answer.clone() });
            self.begin(key, generation, server.url(), address);
        }
        answer
    }

    fn begin(&self, key: Key, generation: Option<i64>, url: String, address: SocketAddr) {
        let (room, begun, cluster) = (self.room.clone(), self.begun.clone(), self.cluster.clone());
        let handshake = self.handshake.clone();
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            // It is never closed.
            let Ok(_place) = room.acquire().await else { return };
            let answer = handshake.shake(url, address).await;
            let is_wanted = |last: &&mut Begun| last.generation == generation;
            let is_news = begun.lock().get_mut(&key).filter(is_wanted).is_some_and(|last| {
                let is_news = last.answer.as_ref() != Some(&answer);
                last.answer = Some(answer);
                is_news
            });
            if is_news {
                cluster.wake(ObjectId::of::<MCPServer>(key));
            }
        });
    }

    /// Where the Service of the proxy is, also for one who does not know its name.
    fn address(&self, server: &MCPServer) -> Option<SocketAddr> {
        let common = server.common();
        let key = Key::new(common.namespace, mcp_server::proxy_service(common.name));
        let service = self.cluster.child::<Service>(&key)?.body()?;
        let address: IpAddr = service["spec"]["clusterIP"].as_str()?.parse().ok()?;
        Some(SocketAddr::new(address, u16::try_from(common.proxy_port).ok()?))
    }
}

fn statement(name: &str, answer: Answer) -> Statement {
    let type_ = types::VERIFIED;
    match answer {
        Ok(1) => {
            Statement::holds(type_, reasons::HANDSHAKE_SUCCEEDED, "MCP handshake succeeded; the server has 1 tool")
        }
        Ok(count) => {
            let text = format!("MCP handshake succeeded; the server has {count} tools");
            Statement::holds(type_, reasons::HANDSHAKE_SUCCEEDED, text)
        }
        Err(Silence::Unauthorized) => {
            let text = "the proxy wants to know who asks, and the operator is nobody it knows; call a tool as a user";
            Statement::unknown(type_, reasons::AUTHENTICATION_REQUIRED, text)
        }
        Err(Silence::Failed(cause)) => {
            let text = format!(
                "MCP handshake failed: {cause}; the logs of Deployment {name} and of StatefulSet {name} tell more"
            );
            Statement::fails(type_, reasons::HANDSHAKE_FAILED, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_again_after_a_while() {
        let at = Instant::now();
        let failed = Some(Err(Silence::Failed("no".to_owned())));
        for (answer, after, is_due) in
            [(None, RECHECK, false), (failed.clone(), Duration::ZERO, false), (failed, RECHECK, true)]
        {
            let begun = Begun { generation: Some(1), at, answer };
            assert_eq!(begun.is_due(at + after), is_due, "{begun:?}");
        }
    }
}
