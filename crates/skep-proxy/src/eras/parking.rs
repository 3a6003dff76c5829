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

/// How long a client may take to come back.
const PATIENCE: Duration = Duration::from_mins(5);
/// Calls that one client may leave waiting, and all clients.
const PER_CLIENT: usize = 8;
const ALL: usize = 256;

/// A call under way in a session.
pub(crate) struct Parked {
    pub(super) seat: Seat,
    pub(super) replies: Replies,
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

/// All calls that wait for their clients. They are in this process only.
#[derive(Debug)]
pub(crate) struct Parking {
    waiting: Mutex<HashMap<String, Place>>,
    is_on: bool,
}

#[derive(Debug)]
struct Place {
    principal: Holder,
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

    /// Keeps a call, and gives the name by which its client comes back for it. Nothing when there are too many.
    pub(super) fn park(&self, principal: Holder, parked: Parked) -> Option<String> {
        let mut waiting = self.waiting.lock();
        let own = waiting.values().filter(|place| place.principal == principal).count();
        // Those who cannot be told from each other share the larger number.
        let most = if principal.is_known() { PER_CLIENT } else { ALL };
        if own >= most || waiting.len() >= ALL {
            return None;
        }
        let name = uuid::Uuid::new_v4().to_string();
        waiting.insert(name.clone(), Place { principal, parked, since: Instant::now() });
        Some(name)
    }

    /// The call that a client comes back for, once.
    pub(super) fn take(&self, principal: &Holder, name: &str) -> Option<Parked> {
        let mut waiting = self.waiting.lock();
        let place = waiting.get(name)?;
        let is_it = place.principal == *principal && place.since.elapsed() < PATIENCE;
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
            let (over, kept) = std::mem::take(&mut *waiting).into_iter().partition(|(_, place)| is_over(place));
            *waiting = kept;
            let over: HashMap<String, Place> = over;
            over.into_values().collect()
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
