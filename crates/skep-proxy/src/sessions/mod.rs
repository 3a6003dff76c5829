//! Sessions of clients: what is known about them beyond the connections of this process.
//!
//! One process keeps them in memory. Several that stand for one server share them in Redis, in the layout that the
//! reference uses, so that a client may come to any of them.

mod memory;
mod record;
mod redis;
mod session;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use self::memory::Memory;
pub use self::redis::{Redis, RedisError, RedisSettings};
use self::session::{ADDRESS, OWNER};
pub(crate) use self::session::{Kind, Metadata, Owner, Session, Whose};
use crate::answer::{self, Answer};
use crate::eras::seal::{KEY_BYTES, SealKey};
use crate::limits::Limits;

/// Where sessions are kept, and what those share who serve the same clients.
#[derive(Debug, Clone, Default)]
pub struct SessionStore {
    redis: Option<Redis>,
    key: Option<SealKey>,
}

impl SessionStore {
    /// In this process, for this process.
    pub fn memory() -> Self {
        Self::default()
    }

    /// In Redis, for all that use the same prefix there.
    pub fn redis(redis: Redis) -> Self {
        Self { redis: Some(redis), key: None }
    }

    /// Says what `requestState` is sealed with. Without that it is a key that is kept with the sessions.
    #[must_use]
    pub fn with_key(self, key: Option<SealKey>) -> Self {
        Self { key, ..self }
    }

    /// Whether others keep their sessions there, too.
    pub(crate) fn is_shared(&self) -> bool {
        self.redis.is_some()
    }
}

/// The store cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unavailable;

impl From<Unavailable> for Answer {
    fn from(_: Unavailable) -> Self {
        answer::text(StatusCode::SERVICE_UNAVAILABLE, "session store unavailable")
    }
}

/// How long sessions live.
#[derive(Debug, Clone, Copy)]
struct Lifetimes {
    /// Without being used.
    idle: Duration,
    /// However much they are used.
    in_all: Duration,
}

/// The sessions of one proxy. They end when they were not used for some time, and some time after they began.
#[derive(Debug)]
pub(crate) struct Sessions {
    store: Store,
    lifetimes: Lifetimes,
    /// How many one client may have.
    most_each: usize,
    key: Option<SealKey>,
}

#[derive(Debug)]
enum Store {
    Memory(Memory),
    Redis(Redis),
}

impl Sessions {
    pub(crate) fn new(store: SessionStore, limits: &Limits) -> Self {
        let lifetimes = Lifetimes { idle: limits.session, in_all: limits.session_in_all };
        let (key, most_each) = (store.key, limits.sessions_each);
        let store = match store.redis {
            None => Store::Memory(Memory::new(lifetimes, limits.sessions, most_each)),
            Some(redis) => Store::Redis(redis),
        };
        Self { store, lifetimes, most_each, key }
    }

    /// Whether other proxies serve the same clients.
    pub(crate) fn are_shared(&self) -> bool {
        matches!(self.store, Store::Redis(_))
    }

    /// Adds a session, unless there is one with that id. When another one had to end for it, that is named: one that is open
    /// ends only if there is no other. Where they are shared, whoever holds it finds that out when it sweeps.
    pub(crate) async fn create(
        &self,
        session: Session,
        is_open: impl Fn(&str) -> bool + Send,
    ) -> Result<Option<Arc<str>>, Unavailable> {
        match &self.store {
            Store::Memory(memory) => Ok(memory.create(session, is_open)),
            Store::Redis(redis) => redis.create(&session, self.lifetimes, self.most_each).await.map(|()| None),
        }
    }

    /// The session with that id, for whoever began it; nobody else can tell it from one that is not there.
    /// It counts as used then, and only then.
    pub(crate) async fn find(&self, id: &str, who: Owner<'_>) -> Result<Option<Arc<Session>>, Unavailable> {
        let caller = who.caller;
        let session = self.look_up(id, |session| session.is_of(caller)).await?;
        if session.as_ref().is_some_and(|session| !session.is_of(caller)) {
            tracing::warn!(caller = caller.map(AsRef::as_ref), "a session was named by somebody who did not begin it");
            who.names_session_of_another();
            return Ok(None);
        }
        Ok(session)
    }

    /// The session with that id, which counts as used now.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<Arc<Session>>, Unavailable> {
        self.look_up(id, |_| true).await
    }

    async fn look_up(
        &self,
        id: &str,
        is_used: impl Fn(&Session) -> bool + Send,
    ) -> Result<Option<Arc<Session>>, Unavailable> {
        match &self.store {
            Store::Memory(memory) => Ok(memory.get(id, is_used)),
            Store::Redis(redis) => Ok(redis.get(id, self.lifetimes, is_used).await?.map(Arc::new)),
        }
    }

    /// Whether there is such a session. Asking does not count as use.
    pub(crate) async fn contains(&self, id: &str) -> Result<bool, Unavailable> {
        match &self.store {
            Store::Memory(memory) => Ok(memory.contains(id)),
            Store::Redis(redis) => redis.contains(id).await,
        }
    }

    /// Changes what belongs to a session, if it is there.
    pub(crate) async fn update(&self, id: &str, change: impl FnOnce(&mut Metadata) + Send) -> Result<(), Unavailable> {
        match &self.store {
            Store::Memory(memory) => {
                memory.update(id, change);
                Ok(())
            }
            Store::Redis(redis) => redis.update(id, self.lifetimes, change).await,
        }
    }

    /// Ends a session, and tells whether it was there.
    pub(crate) async fn delete(&self, id: &str) -> Result<bool, Unavailable> {
        match &self.store {
            Store::Memory(memory) => Ok(memory.delete(id)),
            Store::Redis(redis) => redis.delete(id).await,
        }
    }

    /// Ends a session that nobody asks about any more, as soon as that can be done.
    pub(crate) fn discard(&self, id: &Arc<str>) {
        match &self.store {
            Store::Memory(memory) => drop(memory.delete(id)),
            Store::Redis(redis) => {
                let (redis, id) = (redis.clone(), Arc::clone(id));
                // Without a runtime the process is about to end, and the session ends by its lifetime.
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move { redis.delete(&id).await });
                }
            }
        }
    }

    /// What only those know who were given the same key, or else keep their sessions here.
    pub(crate) async fn secret(&self) -> Result<[u8; KEY_BYTES], Unavailable> {
        if let Some(key) = &self.key {
            return Ok(*key.bytes());
        }
        let mut fresh = [0; KEY_BYTES];
        aws_lc_rs::rand::fill(&mut fresh).map_err(|_| Unavailable)?;
        match &self.store {
            Store::Memory(_) => Ok(fresh),
            Store::Redis(redis) => redis.secret(fresh).await,
        }
    }

    /// Forgets the sessions that have ended. Redis does that itself.
    pub(crate) fn sweep(&self) {
        if let Store::Memory(memory) = &self.store {
            memory.sweep();
        }
    }
}
