//! What one client can take from the others: connections, requests under way, time, and room for events.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::path::{ResourcePath, Target};
use crate::auth::User;
use crate::auth::user::MASTERS_GROUP;
use crate::status::{ApiError, Reason};

/// The limits of a server. The default is what the real server has, or what one machine is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. Further ones wait until one ends.
    pub connections: usize,
    /// Requests under way that change nothing. Who asks for more is told to come back. Watches and other requests that
    /// last as long as the client likes do not count, nor do administrators.
    pub reads: usize,
    /// The same for requests that change something.
    pub writes: usize,
    /// A client that does not finish the TLS handshake by then is gone.
    pub handshake: Duration,
    /// A connection on which no request is under way, or none is sent to its end, is closed after this long.
    pub idle: Duration,
    /// The body of a request must be there by then.
    pub body: Duration,
    /// How long an event is kept after it was written last.
    pub event_life: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1000,
            reads: 400,
            writes: 200,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(90),
            body: Duration::from_secs(30),
            event_life: Duration::from_hours(1),
        }
    }
}

/// The requests under way.
#[derive(Debug)]
pub(crate) struct InFlight {
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
}

impl InFlight {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { reads: Arc::new(Semaphore::new(limits.reads)), writes: Arc::new(Semaphore::new(limits.writes)) }
    }

    /// Lets a request in, for as long as the permit is held.
    pub(crate) fn admit(
        &self,
        user: &User,
        target: &Target,
        is_read: bool,
        watches: bool,
    ) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        let lasts = watches || matches!(target, Target::Resource(path) if is_lasting(path));
        if lasts || user.groups.iter().any(|group| group == MASTERS_GROUP) {
            return Ok(None);
        }
        let kind = if is_read { &self.reads } else { &self.writes };
        kind.clone().try_acquire_owned().map(Some).map_err(|_| {
            let mut error =
                ApiError::new(Reason::TooManyRequests, "Too many requests, please try again later.".to_owned());
            error.retry_after_seconds = Some(1);
            error
        })
    }
}

/// Whether a path leads to something that goes on until one of the two has had enough.
fn is_lasting(path: &ResourcePath) -> bool {
    path.watch || matches!(path.subresource.as_deref(), Some("attach" | "exec" | "log" | "portforward" | "proxy"))
}

#[cfg(test)]
mod tests {
    use super::super::path;
    use super::*;

    #[test]
    fn who_asks_for_too_much_at_once_is_told_to_come_back() {
        let in_flight = InFlight::new(&Limits { reads: 1, writes: 1, ..Limits::default() });
        let (user, master) = (User::new("bee", &[]), User::new("queen", &[MASTERS_GROUP]));
        let pods = path::parse("/api/v1/namespaces/default/pods");
        let logs = path::parse("/api/v1/namespaces/default/pods/a/log");
        let admit = |user: &User, target: &Target, is_read, watches| in_flight.admit(user, target, is_read, watches);
        let first = admit(&user, &pods, true, false).unwrap();
        let refused = admit(&user, &pods, true, false).unwrap_err();
        assert_eq!((refused.reason, refused.retry_after_seconds), (Reason::TooManyRequests, Some(1)));
        assert!(admit(&user, &pods, false, false).unwrap().is_some());
        for (user, target, watches) in [(&user, &pods, true), (&user, &logs, false), (&master, &pods, false)] {
            assert!(admit(user, target, true, watches).unwrap().is_none());
        }
        drop(first);
        assert!(admit(&user, &pods, true, false).is_ok());
    }
}
