//! Sessions whose streams somebody reads. A client that only listens asks nothing, and is there nevertheless.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::answer::Answer;
use crate::eras::http::is_stream;
use crate::tally::Tally;

/// The sessions that have a stream open, and how many each of them has.
#[derive(Debug, Default)]
pub(super) struct Read(Mutex<Tally<Arc<str>>>);

impl Read {
    /// Counts a stream of a session for as long as its client reads it. Nothing else takes long.
    pub(super) fn mark(self: &Arc<Self>, session: &Arc<str>, answer: Answer) -> Answer {
        if !is_stream(answer.headers()) {
            return answer;
        }
        self.0.lock().add(Arc::clone(session));
        let reading = Reading { read: Arc::clone(self), session: Arc::clone(session) };
        answer.map(|body| {
            body.until(async move {
                let _reading = reading;
                std::future::pending().await
            })
        })
    }

    /// Whether somebody reads a stream of this session.
    pub(super) fn contains(&self, session: &str) -> bool {
        self.0.lock().of(session) > 0
    }

    pub(super) fn sessions(&self) -> Vec<Arc<str>> {
        self.0.lock().all().cloned().collect()
    }
}

/// A stream that is read.
struct Reading {
    read: Arc<Read>,
    session: Arc<str>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.read.0.lock().remove(&self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer;
    use crate::body::Body;

    #[test]
    fn a_session_is_read_until_the_last_of_its_streams_is_gone() {
        let (read, session) = (Arc::new(Read::default()), Arc::from("a"));
        let events = || read.mark(&session, answer::events(Body::default()));
        let (first, second) = (events(), events());
        drop(first);
        assert!(read.contains("a") && read.sessions() == [Arc::clone(&session)]);
        drop(second);
        assert!(!read.contains("a") && read.sessions().is_empty());
        let plain = read.mark(&session, answer::empty(http::StatusCode::NO_CONTENT));
        assert!(!read.contains("a"));
        drop(plain);
    }
}
