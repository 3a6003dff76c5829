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
/// How soon a server that did not answer is asked again: soon at first, since it may be starting, and then ever later.
const FIRST_RECHECK: Duration = Duration::from_secs(1);
const LAST_RECHECK: Duration = Duration::from_secs(15);

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
    /// Which one it is.
    number: u32,
    is_under_way: bool,
    /// Of the last one that ended.
    answer: Option<Answer>,
}

impl Begun {
    /// The one after `last`, if there was one.
    fn next(last: Option<Self>, generation: Option<i64>, at: Instant) -> Self {
        let (number, answer) = last.map_or((1, None), |last| (last.number.saturating_add(1), last.answer));
        Self { generation, at, number, is_under_way: true, answer }
    }

    /// How long after this one comes the next.
    fn pause(&self) -> Duration {
        let doubled = 2_u32.saturating_pow(self.number.saturating_sub(1));
        FIRST_RECHECK.saturating_mul(doubled).min(LAST_RECHECK)
    }

    /// Whether it is time for another one: not while this one is under way, nor when it has told all there is to know and
    /// that is only not written down yet.
    fn is_due(&self, now: Instant) -> bool {
        let is_final = matches!(self.answer, Some(Ok(_) | Err(Silence::Unauthorized)));
        !self.is_under_way && !is_final && now.duration_since(self.at) >= self.pause()
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
        let Some((answer, pause)) = self.ask(key, server) else {
            report.keep(types::VERIFIED);
            return Next::Rest;
        };
        let next = if matches!(answer, Err(Silence::Failed(_))) { Next::After(pause) } else { Next::Rest };
        report.say(statement(&server.name_any(), answer));
        next
    }

    /// Forgets a server that is not ready, or gone.
    pub fn forget(&self, key: &Key) {
        self.begun.lock().remove(key);
    }

    /// What came of the last handshake, and how long it is until the next. One is begun if there was none, or if it is
    /// time for another.
    fn ask(&self, key: Key, server: &MCPServer) -> Option<(Answer, Duration)> {
        let (generation, now) = (server.metadata.generation, Instant::now());
        let mut begun = self.begun.lock();
        let mut last = begun.get(&key).filter(|last| last.generation == generation).cloned();
        let is_due = last.as_ref().is_none_or(|last| last.is_due(now));
        if is_due && let Some(address) = self.address(server) {
            let next = Begun::next(last, generation, now);
            begun.insert(key.clone(), next.clone());
            last = Some(next);
            self.begin(key, generation, server.url(), address);
        }
        last.and_then(|last| Some((last.answer.clone()?, last.pause())))
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
                last.is_under_way = false;
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
        let service = self.cluster.child::<Service>(&key)?;
        let address: IpAddr = service.body()?["spec"]["clusterIP"].as_str()?.parse().ok()?;
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
    fn a_server_is_asked_again_ever_later_and_never_twice_at_a_time() {
        let at = Instant::now();
        let mut begun = Begun::next(None, Some(1), at);
        for seconds in [1, 2, 4, 8, 15, 15] {
            let (early, due) = (at + Duration::from_millis(seconds * 1_000 - 1), at + Duration::from_secs(seconds));
            assert!(!begun.is_due(due), "it is under way: {begun:?}");
            begun.is_under_way = false;
            begun.answer = Some(Err(Silence::Failed("no".to_owned())));
            assert_eq!((begun.is_due(early), begun.is_due(due)), (false, true), "{begun:?}");
            begun = Begun::next(Some(begun), Some(1), at);
            assert!(begun.answer.is_some(), "what was said stands until there is another answer");
        }
        begun.is_under_way = false;
        for answer in [Ok(3), Err(Silence::Unauthorized)] {
            begun.answer = Some(answer);
            assert!(!begun.is_due(at + Duration::from_mins(1)), "there is nothing else to know: {begun:?}");
        }
    }
}
