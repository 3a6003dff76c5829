//! Calls whose server waits for an answer of the client, while the client has no request under way.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use skep_mcp::Id;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::translate::Question;

use super::holder::Holder;
use super::line::{self, Replies, Seat};
use crate::sessions::Whose;
use crate::tally::Tally;

/// How long a client may take to come back.
const PATIENCE: Duration = Duration::from_mins(5);
/// Calls that one client may leave waiting, those of all clients at one address that have proved nothing, and all. Several
/// may be at one address who cannot be told from each other, and anybody can make up credentials.
const PER_CLIENT: usize = 8;
const PER_ADDRESS: usize = 64;
const ALL: usize = 256;

/// A call under way in a session.
pub(crate) struct Parked {
    /// Dropped before the seat: what is called off has to be called off within its session.
    pub(super) replies: Replies,
    pub(super) seat: Seat,
    /// What the server has asked, and what it knows the questions by.
    pub(super) pending: Vec<(Id, Question)>,
    /// From which level on the client wants log messages.
    pub(super) level: Option<String>,
    /// What the server was told that the client can be asked.
    pub(super) capabilities: String,
}

impl fmt::Debug for Parked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Parked").field("pending", &self.pending).finish_non_exhaustive()
    }
}

/// Somebody who leaves a call waiting. Only who has the same credentials comes back for it, from wherever that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) holder: Holder,
    /// For whom it counts.
    pub(crate) whose: Whose,
}

impl Client {
    /// Somebody of whom nothing is known.
    pub(crate) fn anybody() -> Self {
        Self { holder: Holder::Anybody, whose: Whose::At(None) }
    }
}

impl Waiting {
    fn has_room(&self, client: &Client) -> bool {
        let Client { holder, whose } = client;
        let is_proven = matches!(whose, Whose::Known(_));
        self.calls.len() < ALL
            && (!holder.is_known() || self.of_clients.of(holder) < PER_CLIENT)
            && (is_proven || self.of_addresses.of(whose) < PER_ADDRESS)
    }

    fn insert(&mut self, name: String, place: Place) {
        self.of_clients.add(place.whose.holder.clone());
        self.of_addresses.add(place.whose.whose.clone());
        self.calls.insert(name, place);
    }

    fn remove(&mut self, name: &str) -> Option<Place> {
        let place = self.calls.remove(name)?;
        self.of_clients.remove(&place.whose.holder);
        self.of_addresses.remove(&place.whose.whose);
        Some(place)
    }
}

/// All calls that wait for their clients. They are in this process only.
#[derive(Debug)]
pub(crate) struct Parking {
    waiting: Mutex<Waiting>,
    is_on: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    /// By the names that their clients come back with, which nobody can guess.
    calls: HashMap<String, Place>,
    of_clients: Tally<Holder>,
    of_addresses: Tally<Whose>,
}

#[derive(Debug)]
struct Place {
    whose: Client,
    parked: Parked,
    since: Instant,
}

impl Parking {
    /// A place for calls that wait. Without it servers are told that clients cannot be asked anything.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { waiting: Mutex::default(), is_on }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether a client may leave one more call waiting.
    pub(super) fn has_room(&self, client: &Client) -> bool {
        self.waiting.lock().has_room(client)
    }

    /// Keeps a call, and gives the name by which its client comes back for it. Nothing when there are too many.
    pub(super) fn park(&self, client: &Client, parked: Parked) -> Option<String> {
        let mut waiting = self.waiting.lock();
        if !waiting.has_room(client) {
            return None;
        }
        let name = uuid::Uuid::new_v4().to_string();
        waiting.insert(name.clone(), Place { whose: client.clone(), parked, since: Instant::now() });
        Some(name)
    }

    /// The call that a client comes back for, once.
    pub(super) fn take(&self, holder: &Holder, name: &str) -> Option<Parked> {
        let mut waiting = self.waiting.lock();
        let place = waiting.calls.get(name)?;
        let is_it = place.whose.holder == *holder && place.since.elapsed() < PATIENCE;
        if is_it { waiting.remove(name).map(|place| place.parked) } else { None }
    }

    /// Gives up the calls whose clients did not come back.
    pub(crate) async fn sweep(&self) {
        self.give_up(|place| place.since.elapsed() >= PATIENCE).await;
    }

    /// Gives up all.
    pub(crate) async fn close(&self) {
        self.give_up(|_| true).await;
    }

    async fn give_up(&self, is_over: impl Fn(&Place) -> bool) {
        let over: Vec<Place> = {
            let mut waiting = self.waiting.lock();
            let over = waiting.calls.iter().filter(|(_, place)| is_over(place)).map(|(name, _)| name.clone());
            let over: Vec<String> = over.collect();
            over.iter().filter_map(|name| waiting.remove(name)).collect()
        };
        // All at once: a server that does not listen to one of them need not make the others wait.
        let told = over.into_iter().map(async |Place { parked, .. }| {
            for (asked, question) in &parked.pending {
                let answer = if question.method == "elicitation/create" {
                    line::result(asked.as_json(), r#"{"action":"cancel"}"#)
                } else {
                    Fault::new(INTERNAL_ERROR, "the client did not come back").answer(Some(asked)).into()
                };
                parked.seat.line.tell(answer).await;
            }
            // Dropping the replies calls the request off, and dropping the seat gives the session back.
        });
        futures::future::join_all(told).await;
    }
}

#[cfg(test)]
mod tests;
