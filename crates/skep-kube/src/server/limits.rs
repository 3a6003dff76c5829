//! What one client can take from the others: connections, requests under way, time, and room for events.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connect::Part;
use super::path::Target;
use crate::auth::User;
use crate::auth::user::MASTERS_GROUP;
use crate::status::{ApiError, Reason};

/// The limits of a server. The default is what the real server has, or what one machine is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. For a further one, one goes on which nothing is under way; when there is none, it waits.
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
        method: &Method,
        watches: bool,
    ) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        if is_lasting(target, method, watches) || user.groups.iter().any(|group| group == MASTERS_GROUP) {
            return Ok(None);
        }
        let kind = if is_read(method) { &self.reads } else { &self.writes };
        kind.clone().try_acquire_owned().map(Some).map_err(|_| {
            let mut error =
                ApiError::new(Reason::TooManyRequests, "Too many requests, please try again later.".to_owned());
            error.retry_after_seconds = Some(1);
            error
        })
    }
}

/// Whether a request changes nothing.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether a request goes on until one of the two has had enough. Nobody gets past the limits by calling a write a
/// watch, nor by a path that no node serves.
pub(super) fn is_lasting(target: &Target, method: &Method, watches: bool) -> bool {
    let Target::Resource(path) = target else { return false };
    (*method == Method::GET && path.verb(method, watches) == "watch") || Part::of(path).is_some()
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
        let (get, post) = (Method::GET, Method::POST);
        let admit =
            |user: &User, target: &Target, method: &Method, watches| in_flight.admit(user, target, method, watches);
        let first = admit(&user, &pods, &get, false).unwrap();
        let refused = admit(&user, &pods, &get, false).unwrap_err();
        assert_eq!((refused.reason, refused.retry_after_seconds), (Reason::TooManyRequests, Some(1)));
        let write = admit(&user, &pods, &post, false).unwrap();
        assert!(write.is_some());
        for (user, target, method, watches) in [
            (&user, &pods, &get, true),
            (&user, &logs, &get, false),
            (&user, &path::parse("/api/v1/watch/pods"), &get, false),
            (&user, &path::parse("/api/v1/namespaces/default/pods/a/exec"), &post, false),
            (&master, &pods, &get, false),
        ] {
            assert!(admit(user, target, method, watches).unwrap().is_none(), "{method} {target:?}");
        }
        drop(first);
        assert!(admit(&user, &pods, &get, false).is_ok());
    }

    /// What a client says of a request must not let it past the limits.
    #[test]
    fn what_does_not_last_counts_whatever_it_is_called() {
        let in_flight = InFlight::new(&Limits { reads: 0, writes: 0, ..Limits::default() });
        let user = User::new("bee", &[]);
        let pods = "/api/v1/namespaces/default/pods";
        for (method, path, watches) in [
            (Method::POST, pods.to_owned(), true),
            (Method::PUT, format!("{pods}/a"), true),
            (Method::PATCH, format!("{pods}/a"), true),
            (Method::DELETE, pods.to_owned(), true),
            (Method::HEAD, pods.to_owned(), true),
            (Method::GET, format!("{pods}/a"), true),
            (Method::GET, "/version".to_owned(), true),
            (Method::POST, "/api/v1/watch/namespaces/default/pods".to_owned(), false),
            (Method::POST, format!("{pods}/a/proxy"), false),
            (Method::POST, "/api/v1/namespaces/default/secrets/a/log".to_owned(), false),
        ] {
            let outcome = in_flight.admit(&user, &path::parse(&path), &method, watches);
            assert!(outcome.is_err(), "{method} {path} is let in");
        }
    }
}
