//! Sessions at a server, opened for clients that have none.
//!
//! A session belongs to one client, known by its credentials, to what that client can be asked and to what its requests say
//! to the server besides their messages. A client without credentials cannot be told from another one, so that it gets a session for each request. Somebody may want it otherwise:
//! a session for each request of everybody, or one that all share who cannot be told from each other.

mod entries;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use self::entries::{Claim, Entries, Entry, Number};
use super::holder::Holder;
use super::http::HttpLine;
use super::line::{Hosts, Lost, NoSession, Seat, Sharing};
use super::room::{Place, Room};
use super::server_session::{Opener, ServerSession};
use super::settings::{BackendSessions, EraSettings};
use super::surroundings::Surroundings;
use super::verdict::Eras;
use crate::sessions::Whose;
use crate::turns::Turns;

/// How long a session lives at most, and no longer than the credentials that it was opened with. One that is used then
/// ends when it is not.
const OLDEST: Duration = Duration::from_hours(1);
/// Sessions of one client, those of all clients at one address that have proved nothing, and of all. Several may be at one
/// address who cannot be told from each other, and anybody can make up credentials.
const PER_CLIENT: usize = 8;
const PER_ADDRESS: usize = 128;
const ALL: usize = 256;
/// How many of them those may have who listen, and keep theirs for as long as they like: in all, and who counts as one. The
/// others are for calls.
const LISTENING: usize = 128;
const LISTENING_EACH: usize = 32;

/// What a session is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Purpose {
    principal: Holder,
    surroundings: Surroundings,
    /// What the client can be asked: an object.
    capabilities: String,
}

/// All sessions of one proxy.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Who uses a session.
    mode: BackendSessions,
    /// How long one lives that nobody uses, and how long at most.
    idle: Duration,
    oldest: Duration,
    sessions: Mutex<Entries>,
    listening: Arc<Room>,
    /// One session at a time is opened for a purpose; the others of that purpose find it open.
    opening: Turns<Purpose>,
    farewells: Mutex<tokio::task::JoinSet<()>>,
}

/// The use of a session. When it is dropped, the session is for the next one, or ends.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Arc<Pool>,
    number: Number,
    session: Arc<ServerSession>,
    /// Whether nobody uses it afterwards.
    is_last: bool,
    /// The place of somebody who listens.
    _listening: Option<Place>,
}

/// The sessions of the client that comes by one line.
#[derive(Debug)]
pub(crate) struct Seats {
    pub(crate) pool: Arc<Pool>,
    pub(crate) eras: Arc<Eras>,
    pub(crate) line: HttpLine,
    /// For whom the sessions count.
    pub(crate) whose: Whose,
    /// What opens the sessions.
    pub(crate) opener: Arc<dyn Opener>,
}

impl Hosts for Seats {
    fn seat<'a>(&'a self, capabilities: &'a str, sharing: Sharing) -> BoxFuture<'a, Result<Seat, NoSession>> {
        Box::pin(async move {
            let leased = self.pool.lease(self, capabilities, sharing).await;
            if let Err(NoSession::Refused(_) | NoSession::Lost(Lost::Refused(_))) = &leased {
                // A server of sessions would have agreed.
                self.eras.forget();
            }
            let lease = leased?;
            let line = lease.session.line(&self.line);
            let agreed = Arc::clone(&lease.session.agreed);
            Ok(Seat { line, agreed, held: Some(lease) })
        })
    }

    fn has_own_sessions(&self) -> bool {
        true
    }
}

impl Pool {
    pub(crate) fn new(settings: &EraSettings) -> Self {
        Self {
            mode: settings.sessions,
            idle: settings.session_idle,
            oldest: OLDEST,
            sessions: Mutex::default(),
            listening: Room::new(LISTENING, LISTENING_EACH),
            opening: Turns::default(),
            farewells: Mutex::default(),
        }
    }

    /// Whether a session of somebody is for the next request, too.
    fn keeps(&self, principal: &Holder) -> bool {
        match self.mode {
            BackendSessions::PerPrincipal => principal.is_known(),
            BackendSessions::PerRequest => false,
            BackendSessions::Shared => true,
        }
    }

    /// A session for a client. One that is not shared has no other user meanwhile.
    async fn lease(self: &Arc<Self>, seats: &Seats, capabilities: &str, sharing: Sharing) -> Result<Lease, NoSession> {
        let is_last = sharing == Sharing::OnlyOnce;
        // Before anything is opened.
        let listening = is_last.then(|| self.listening.take(&seats.whose)).transpose()?;
        let (number, session) = self.find_or_open(seats, capabilities, sharing != Sharing::Shared).await?;
        Ok(Lease { pool: Arc::clone(self), number, session, is_last, _listening: listening })
    }

    async fn find_or_open(
        &self,
        seats: &Seats,
        capabilities: &str,
        is_exclusive: bool,
    ) -> Result<(Number, Arc<ServerSession>), NoSession> {
        let purpose = Purpose {
            principal: seats.line.holder().clone(),
            surroundings: seats.line.surroundings(),
            capabilities: capabilities.to_owned(),
        };
        let is_exclusive = is_exclusive || !self.keeps(&purpose.principal);
        if let Some(found) = self.take(&purpose, is_exclusive) {
            return Ok(found);
        }
        let turn = (!is_exclusive).then(|| self.opening.of(&purpose));
        // Held across the handshake on purpose: whoever waits here finds the session open.
        let _turn = match &turn {
            Some(turn) => Some(turn.come().await),
            None => None,
        };
        if let Some(found) = self.take(&purpose, is_exclusive) {
            return Ok(found);
        }
        let claim = Claim { principal: purpose.principal.clone(), whose: seats.whose.clone() };
        let place = self.make_room(&claim)?;
        let session = Arc::new(seats.opener.open(capabilities).await?);
        let now = Instant::now();
        // Never longer than what it was opened with is good, whatever those who use it show then.
        let until = seats.line.end_of_credentials().into_iter().chain([now + self.oldest]).min().unwrap_or(now);
        let opened = Arc::clone(&session);
        let entry = Entry { session: opened, claim, purpose, users: 1, is_exclusive, until, used: now };
        Ok((place.arrive(entry), session))
    }

    /// A session that is open already.
    fn take(&self, purpose: &Purpose, is_exclusive: bool) -> Option<(Number, Arc<ServerSession>)> {
        if !self.keeps(&purpose.principal) {
            return None;
        }
        self.sessions.lock().take(purpose, is_exclusive)
    }

    /// A place for a session that is to be opened. Ends sessions that nobody uses, if there are too many.
    fn make_room(&self, claim: &Claim) -> Result<Coming<'_>, NoSession> {
        let mut gone = Vec::new();
        let made = self.sessions.lock().make_room(claim, &mut gone);
        for session in gone {
            self.end(session);
        }
        made.map(|()| Coming { pool: self, claim: Some(claim.clone()) })
    }

    /// Ends the sessions that were not used for too long.
    pub(crate) fn sweep(&self) {
        let over = self.sessions.lock().sweep(self.idle);
        for entry in over {
            self.end(entry.session);
        }
    }

    /// Ends all sessions, and waits until the server was told.
    pub(crate) async fn close(&self) {
        let all = self.sessions.lock().clear();
        for entry in all {
            self.end(entry.session);
        }
        let mut farewells = std::mem::take(&mut *self.farewells.lock());
        while farewells.join_next().await.is_some() {}
    }

    fn end(&self, session: Arc<ServerSession>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let mut farewells = self.farewells.lock();
            while farewells.try_join_next().is_some() {}
            farewells.spawn_on(async move { session.end().await }, &runtime);
        }
    }
}

/// The place of a session that is being opened. When it is open it has a place of its own.
struct Coming<'a> {
    pool: &'a Pool,
    claim: Option<Claim>,
}

impl Coming<'_> {
    /// The session is open.
    fn arrive(mut self, entry: Entry) -> Number {
        let mut sessions = self.pool.sessions.lock();
        if let Some(claim) = self.claim.take() {
            sessions.leave_room(&claim);
        }
        sessions.insert(entry)
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            self.pool.sessions.lock().leave_room(&claim);
        }
    }
}

impl Lease {
    /// The server does not know the session any more.
    pub(crate) fn lost(self) {
        self.pool.sessions.lock().remove(self.number);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut sessions = self.pool.sessions.lock();
        let Some(entry) = sessions.release(self.number) else { return };
        let is_over = self.is_last || !self.pool.keeps(&entry.purpose.principal) || Instant::now() >= entry.until;
        if entry.users == 0 && is_over {
            let ended = sessions.remove(self.number);
            drop(sessions);
            if let Some(entry) = ended {
                self.pool.end(entry.session);
            }
        }
    }
}

#[cfg(test)]
mod tests;
