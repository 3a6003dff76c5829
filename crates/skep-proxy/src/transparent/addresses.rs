//! Streams of servers that speak HTTP+SSE, by the addresses that they announce: a message goes to an address, and its answer
//! comes on the stream that announced it. What the one learns is here for the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Uri;
use parking_lot::Mutex;

use super::Transparent;
use super::announced::named;
use super::asked::Unanswered;
use super::talk::Talk;
use super::upstream::resolve;
use crate::sessions::{Owner, Unavailable};

/// What belongs to the session of a stream: the address that it announced.
pub(super) const MESSAGES: &str = "message_address";

/// The streams that are open, by the path and query of what each of them announced.
#[derive(Debug, Default)]
pub(super) struct Addresses(Mutex<HashMap<Box<str>, Arc<Stream>>>);

/// A stream, as far as those are concerned who send messages.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Who has proved to have opened it.
    owner: Option<Arc<str>>,
    /// Whether others were told the same address meanwhile, so that it is nobody's own.
    is_common: AtomicBool,
    pub(super) unanswered: Unanswered,
    pub(super) talk: Talk,
}

impl Addresses {
    /// The stream that announced this address.
    pub(super) fn find(&self, address: &Uri) -> Option<Arc<Stream>> {
        self.0.lock().get(address.path_and_query()?.as_str()).cloned()
    }

    /// A stream that somebody has opened at this place, and that has announced nothing yet.
    pub(super) fn open(self: &Arc<Self>, place: Uri, owner: Option<Arc<str>>) -> Opened {
        let stream = Arc::new(Stream { owner, ..Stream::default() });
        Opened { all: Arc::clone(self), place, address: None, stream }
    }
}

impl Transparent {
    /// Whether somebody may send messages to an address: its stream has to be theirs, whichever proxy holds that. Where
    /// nobody has to prove anything, everybody is the same.
    pub(super) async fn is_announced_to(&self, who: Owner<'_>, address: &Uri) -> Result<bool, Unavailable> {
        let (Some(caller), Some(asked)) = (who.caller, address.path_and_query()) else { return Ok(true) };
        if let Some(stream) = self.addresses.find(address) {
            let is_own = stream.is_common.load(Ordering::Relaxed) || stream.owner.as_ref() == Some(caller);
            if !is_own {
                who.names_session_of_another();
            }
            return Ok(is_own);
        }
        if !self.is_shared {
            return Ok(false);
        }
        match asked.query().and_then(named) {
            // Exactly that address: a server may find another session in one that is written in another way.
            Some(id) => Ok(self.sessions.find(id, who).await?.is_some_and(|session| {
                session.metadata.get(MESSAGES).is_none_or(|announced| announced.as_str() == asked.as_str())
            })),
            // Sessions that are named otherwise are known to the proxy that holds the stream, and to the server.
            None => Ok(!asked.as_str().contains('%')),
        }
    }
}

/// A stream, for as long as it is open.
#[derive(Debug)]
pub(super) struct Opened {
    all: Arc<Addresses>,
    place: Uri,
    /// What it has announced.
    address: Option<Box<str>>,
    pub(super) stream: Arc<Stream>,
}

impl Opened {
    /// What it has announced.
    pub(super) fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// The server says where messages go. What it says first counts.
    pub(super) fn announce(&mut self, address: &[u8]) {
        let Ok(address) = std::str::from_utf8(address) else { return };
        // Whichever host it names, clients reach it through us.
        let place = if address.contains("://") { address.parse().ok() } else { resolve(&self.place, address) };
        let place = place.as_ref().and_then(Uri::path_and_query).map(|place| Box::<str>::from(place.as_str()));
        if let Some(place) = place.filter(|_| self.address.is_none()) {
            let before = self.all.0.lock().insert(place.clone(), Arc::clone(&self.stream));
            let is_common = before
                .is_some_and(|before| before.owner != self.stream.owner || before.is_common.load(Ordering::Relaxed));
            self.stream.is_common.store(is_common, Ordering::Relaxed);
            self.address = Some(place);
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let Some(address) = &self.address else { return };
        let mut all = self.all.0.lock();
        // Somebody may have announced the same address since.
        if all.get(address).is_some_and(|stream| Arc::ptr_eq(stream, &self.stream)) {
            all.remove(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_found_by_what_it_announced_until_it_ends() {
        let all: Arc<Addresses> = Arc::default();
        for announced in ["messages?s=1", "/hive/messages?s=1", "http://inside:8080/hive/messages?s=1"] {
            let address = Uri::from_static("/hive/messages?s=1");
            let mut opened = all.open(Uri::from_static("http://a/hive/sse"), None);
            assert!(all.find(&address).is_none());
            opened.announce(announced.as_bytes());
            opened.announce(b"/elsewhere");
            assert!(Arc::ptr_eq(&all.find(&address).unwrap(), &opened.stream), "{announced}");
            assert!(all.find(&Uri::from_static("/elsewhere")).is_none());
            let mut other = all.open(Uri::from_static("http://a/hive/sse"), None);
            other.announce(announced.as_bytes());
            drop(opened);
            assert!(Arc::ptr_eq(&all.find(&address).unwrap(), &other.stream));
            drop(other);
            assert!(all.0.lock().is_empty());
        }
    }
}
