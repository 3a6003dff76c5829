//! A process for each session, for as long as there are processes.
//!
//! Whoever has no session is served by the process that all share. A session that begins takes a process for itself, and
//! what that says is for its client alone. The process ends with the session: nobody else ever meets it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::bridge::Bridge;
use super::connect::Connector;
use crate::answer::{self, Answer};
use crate::eras::settings::BackendEra;
use crate::limits::Limits;

/// How long a session that begins waits for a process.
const PATIENCE: Duration = Duration::from_secs(10);
/// A session that was idle for so long has to make room for one that begins.
const IDLE: Duration = Duration::from_mins(1);
/// The same for one in which nothing was ever asked: whoever began it wanted to know whether there is a server, or is gone.
const UNUSED: Duration = Duration::from_secs(3);
/// How often it is looked whether there is such a session, while one that begins waits.
const CHECK: Duration = Duration::from_millis(500);

/// Processes that are for one session each.
pub trait Processes: Send + Sync + 'static {
    /// One that nobody uses, if there is one. It is used for as long as its connector is there.
    fn take(&self) -> Option<Box<dyn Connector>>;
}

/// The processes that sessions have for themselves.
pub(super) struct Pool {
    processes: Box<dyn Processes>,
    limits: Limits,
    /// Of which era the processes are, if somebody has said that.
    era: OnceLock<BackendEra>,
    held: Mutex<HashMap<Arc<str>, Held>>,
    running: Mutex<JoinSet<()>>,
    /// Told when a process is free again.
    released: Notify,
    stop: CancellationToken,
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The names of sessions are for their clients.
        formatter.debug_struct("Pool").field("held", &self.held.lock().len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Held {
    bridge: Arc<Bridge>,
    used: Instant,
}

impl Held {
    /// Whether it was idle for so long that another session may have its process.
    fn may_end(&self, now: Instant) -> bool {
        let patience = if self.bridge.is_taken_up() { IDLE } else { UNUSED };
        now.duration_since(self.used) > patience && self.bridge.is_idle()
    }
}

/// The bridge of a session that begins. When nothing comes of it, its process ends.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) bridge: Arc<Bridge>,
    own: Option<(Arc<Pool>, DropGuard)>,
}

impl Begun {
    /// A session that shares the process with others.
    pub(super) fn shared(bridge: &Arc<Bridge>) -> Self {
        Self { bridge: Arc::clone(bridge), own: None }
    }

    /// The session has begun, and has this name.
    pub(super) fn keep(self, session: &Arc<str>) {
        if let Some((pool, unused)) = self.own {
            unused.disarm();
            pool.hold(session, self.bridge);
        }
    }
}

impl Pool {
    pub(super) fn new(processes: impl Processes, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            processes: Box::new(processes),
            limits,
            era: OnceLock::new(),
            held: Mutex::default(),
            running: Mutex::default(),
            released: Notify::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Says of which era the processes are.
    pub(super) fn say_era(&self, era: BackendEra) {
        // Who says so first is believed.
        let _ = self.era.set(era);
    }

    /// The bridge of a session, which counts as used now.
    pub(super) fn get(&self, session: &str) -> Option<Arc<Bridge>> {
        let mut held = self.held.lock();
        let held = held.get_mut(session)?;
        held.used = Instant::now();
        Some(Arc::clone(&held.bridge))
    }

    /// A process for a session that begins.
    pub(super) async fn begin(self: &Arc<Self>) -> Result<Begun, Answer> {
        let taken = tokio::time::timeout(PATIENCE, self.take()).await;
        let connector = taken.map_err(|_| answer::not_ready("other sessions use all processes of the MCP server"))?;
        self.begin_with(connector).await
    }

    /// The same with a connection that is there already.
    pub(super) async fn begin_with(self: &Arc<Self>, connector: Box<dyn Connector>) -> Result<Begun, Answer> {
        let begun = self.start(connector);
        let readiness = begun.bridge.readiness();
        let ready = async {
            tokio::select! {
                () = readiness.ready() => true,
                () = begun.bridge.over().cancelled() => false,
            }
        };
        match tokio::time::timeout(self.limits.request, ready).await {
            Ok(true) => Ok(begun),
            _ => Err(answer::not_ready(&readiness.reason().unwrap_or_else(|| "the MCP server does not start".into()))),
        }
    }

    /// Starts what keeps a session connected to its process.
    fn start(self: &Arc<Self>, connector: Box<dyn Connector>) -> Begun {
        let over = self.stop.child_token();
        let bridge = Bridge::of_one_session(self.limits.clone(), over.clone());
        bridge.say_era(self.era.get().copied().unwrap_or_default());
        let mut running = self.running.lock();
        while running.try_join_next().is_some() {}
        running.spawn(Arc::clone(self).keep_running(Arc::clone(&bridge), connector));
        Begun { bridge, own: Some((Arc::clone(self), over.drop_guard())) }
    }

    /// Waits for a process that nobody uses.
    async fn take(&self) -> Box<dyn Connector> {
        let mut is_ending = false;
        loop {
            let released = self.released.notified();
            if let Some(connector) = self.processes.take() {
                return connector;
            }
            // One session ends for one that begins, however long its process takes to end.
            is_ending = is_ending || self.make_room();
            // Another one may be idle for long enough by then. What is free may be taken by somebody else.
            is_ending &= tokio::time::timeout(CHECK, released).await.is_err();
        }
    }

    /// Ends the session that was idle the longest, if there is one that was idle for long. One that nobody has used goes
    /// first.
    fn make_room(&self) -> bool {
        let (mut held, now) = (self.held.lock(), Instant::now());
        let idle = held.iter().filter(|(_, held)| held.may_end(now));
        let oldest = idle.min_by_key(|(_, held)| (held.bridge.is_taken_up(), held.used));
        let Some(ended) = oldest.map(|(session, _)| Arc::clone(session)).and_then(|oldest| held.remove(&oldest)) else {
            return false;
        };
        tracing::info!("a session was ended, because another one needs its process");
        ended.bridge.over().cancel();
        true
    }

    async fn keep_running(self: Arc<Self>, bridge: Arc<Bridge>, connector: Box<dyn Connector>) {
        let over = bridge.over().clone();
        if let Err(error) = Arc::clone(&bridge).run(connector, over.clone()).await {
            tracing::warn!(%error, "a session ends with its process");
        }
        over.cancel();
        self.held.lock().retain(|_, held| !Arc::ptr_eq(&held.bridge, &bridge));
        self.released.notify_waiters();
    }

    fn hold(&self, session: &Arc<str>, bridge: Arc<Bridge>) {
        let mut held = self.held.lock();
        // One whose process has ended meanwhile would never be let go.
        if !bridge.over().is_cancelled() {
            held.insert(Arc::clone(session), Held { bridge, used: Instant::now() });
        }
    }

    /// Ends all sessions, and waits for what is under way in them.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        let mut running = std::mem::take(&mut *self.running.lock());
        while running.join_next().await.is_some() {}
    }
}
