//! Sessions in Redis, for all proxies that stand for one server.
//!
//! A session is a text under the prefix and its UUID, which is all that others know. Beside them there is one sorted set for
//! each client: the UUIDs of its sessions, by the time when each would end. It is what their number is bounded by. Who else
//! uses the store need not know of it: a session that is missing there is not counted until it is used here.

use std::time::Duration;

use redis::Pipeline;
use time::OffsetDateTime;
use uuid::Uuid;

use super::record::{Record, key};
use super::redis::Redis;
use super::{Lifetimes, Metadata, Session, Unavailable, Whose};
use crate::eras::seal::KEY_BYTES;

/// Where the secret is. Sessions have other names: those of UUIDs.
const SECRET: &str = "request-state-key";
/// What the names of sets begin with.
const OF: &str = "of:";
/// A use makes a session live longer when that is more than this part of its lifetime. Most uses write nothing.
const NOTICEABLE: u64 = 100;

impl Redis {
    /// Adds a session, unless there is one with that id. When its client has more than so many, those of them end that were
    /// idle the longest.
    pub(super) async fn create(
        &self,
        session: &Session,
        lifetimes: Lifetimes,
        most_each: usize,
    ) -> Result<(), Unavailable> {
        let (id, left) = (key(&session.id), lifetimes.idle.min(lifetimes.in_all));
        let mut adding = redis::pipe();
        adding.cmd("SET").arg(self.name(id)).arg(Record::new(session).text());
        adding.arg("EX").arg(seconds(left)).arg("NX");
        let (added,): (Option<String>,) = self.ask(&adding).await?;
        if added.is_none() {
            // It was there already, and stays as it is.
            return Ok(());
        }
        let set = self.set(&session.whose());
        let mut counting = redis::pipe();
        count(&mut counting, &set, id, left, lifetimes);
        // All but the last ones.
        let most = i64::try_from(most_each.max(1)).unwrap_or(i64::MAX - 1);
        counting.cmd("ZRANGE").arg(&set).arg(0).arg(-(most + 1));
        let (over,): (Vec<String>,) = self.ask(&counting).await?;
        let over: Vec<Uuid> = over.iter().filter_map(|id| Uuid::parse_str(id).ok()).collect();
        if over.is_empty() {
            return Ok(());
        }
        tracing::info!(sessions = over.len(), "a client has too many sessions, and the oldest of them end");
        let mut ending = redis::pipe();
        ending.cmd("DEL").arg(over.iter().map(|id| self.name(*id)).collect::<Vec<_>>()).ignore();
        ending.cmd("ZREM").arg(&set).arg(over.iter().map(Uuid::to_string).collect::<Vec<_>>()).ignore();
        self.ask(&ending).await
    }

    /// The session with that id. When it `is_used` by that, it lives for as long again.
    pub(super) async fn get(
        &self,
        id: &str,
        lifetimes: Lifetimes,
        is_used: impl Fn(&Session) -> bool + Send,
    ) -> Result<Option<Session>, Unavailable> {
        let uuid = key(id);
        let name = self.name(uuid);
        let mut asking = redis::pipe();
        asking.get(&name).ttl(&name);
        let (text, lives): (Option<String>, i64) = self.ask(&asking).await?;
        let Some(record) = text.and_then(|text| Record::read(&text)) else { return Ok(None) };
        let Some(session) = record.session(id) else { return Ok(None) };
        let Some(left) = record.left(lifetimes) else {
            self.end(uuid, &session).await?;
            return Ok(None);
        };
        let left_seconds = i64::try_from(seconds(left)).unwrap_or(i64::MAX);
        let is_noticed = lives < 0 || lives.abs_diff(left_seconds) > seconds(lifetimes.idle) / NOTICEABLE;
        if is_noticed && is_used(&session) {
            let mut renewing = redis::pipe();
            renewing.cmd("EXPIRE").arg(&name).arg(left_seconds).ignore();
            count(&mut renewing, &self.set(&session.whose()), uuid, left, lifetimes);
            self.ask::<()>(&renewing).await?;
        }
        Ok(Some(session))
    }

    /// Whether there is such a session.
    pub(super) async fn contains(&self, id: &str) -> Result<bool, Unavailable> {
        let (is_there,) = self.ask(redis::pipe().cmd("EXISTS").arg(self.name(key(id)))).await?;
        Ok(is_there)
    }

    /// Changes what belongs to a session, if it is there.
    pub(super) async fn update(
        &self,
        id: &str,
        lifetimes: Lifetimes,
        change: impl FnOnce(&mut Metadata),
    ) -> Result<(), Unavailable> {
        let uuid = key(id);
        let name = self.name(uuid);
        let (text,): (Option<String>,) = self.ask(redis::pipe().get(&name)).await?;
        let Some(record) = text.and_then(|text| Record::read(&text)) else { return Ok(()) };
        let (Some(left), Some(session)) = (record.left(lifetimes), record.session(id)) else { return Ok(()) };
        let set = self.set(&session.whose());
        let mut writing = redis::pipe();
        writing.cmd("SET").arg(&name).arg(record.changed(change).text());
        writing.arg("EX").arg(seconds(left)).arg("XX").ignore();
        count(&mut writing, &set, uuid, left, lifetimes);
        self.ask(&writing).await
    }

    /// Ends a session, and tells whether it was there.
    pub(super) async fn delete(&self, id: &str) -> Result<bool, Unavailable> {
        let uuid = key(id);
        let (text,): (Option<String>,) = self.ask(redis::pipe().cmd("GETDEL").arg(self.name(uuid))).await?;
        if let Some(session) = text.as_deref().and_then(Record::read).and_then(|record| record.session(id)) {
            self.end(uuid, &session).await?;
        }
        Ok(text.is_some())
    }

    /// The secret of all that use the same prefix, which is `fresh` unless there is one.
    pub(super) async fn secret(&self, fresh: [u8; KEY_BYTES]) -> Result<[u8; KEY_BYTES], Unavailable> {
        let name = format!("{}{SECRET}", self.prefix);
        let mut asking = redis::pipe();
        asking.cmd("SET").arg(&name).arg(hex::encode(fresh)).arg("NX").ignore();
        let (text,): (Option<String>,) = self.ask(asking.get(&name)).await?;
        let mut secret = [0; KEY_BYTES];
        let is_read = text.is_some_and(|text| hex::decode_to_slice(text, &mut secret).is_ok());
        is_read.then_some(secret).ok_or_else(|| {
            tracing::error!(key = name, "what Redis has there is no key; delete it");
            Unavailable
        })
    }

    /// Where a session is.
    fn name(&self, id: Uuid) -> String {
        format!("{}{id}", self.prefix)
    }

    /// Where the sessions of a client are counted.
    fn set(&self, whose: &Whose) -> String {
        match whose {
            Whose::Known(owner) => format!("{}{OF}{owner}", self.prefix),
            Whose::At(Some(address)) => format!("{}{OF}{address}", self.prefix),
            Whose::At(None) => format!("{}{OF}anybody", self.prefix),
        }
    }

    /// Takes away what is left of a session.
    async fn end(&self, id: Uuid, session: &Session) -> Result<(), Unavailable> {
        let mut ending = redis::pipe();
        ending.del(self.name(id)).ignore();
        ending.cmd("ZREM").arg(self.set(&session.whose())).arg(id.to_string()).ignore();
        self.ask(&ending).await
    }
}

/// Counts a session that ends after some time, and those no more that have ended. No session lives longer without a use than the set does.
fn count(commands: &mut Pipeline, set: &str, id: Uuid, left: Duration, lifetimes: Lifetimes) {
    let now = now();
    commands.cmd("ZREMRANGEBYSCORE").arg(set).arg("-inf").arg(now).ignore();
    let ends = now.saturating_add(i64::try_from(left.as_micros()).unwrap_or(i64::MAX));
    commands.cmd("ZADD").arg(set).arg(ends).arg(id.to_string()).ignore();
    commands.cmd("EXPIRE").arg(set).arg(seconds(lifetimes.idle)).ignore();
}

/// Redis counts whole seconds, and refuses none.
fn seconds(lifetime: Duration) -> u64 {
    lifetime.as_secs().max(1)
}

/// Microseconds since the beginning of 1970. Redis can tell them apart for two centuries more.
fn now() -> i64 {
    i64::try_from(OffsetDateTime::now_utc().unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}
