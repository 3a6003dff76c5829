//! Clients that listen by a request. Each of them holds a connection and more, so they may not have any number of streams.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use parking_lot::Mutex;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::sse::Frame;
use skep_mcp::{Message, method};

use super::holder::Holder;
use super::listen;
use crate::answer::{self, Answer};
use crate::open_ended::OpenEnded;
use crate::tally::Tally;

/// Streams of one client, and of all that cannot be told from each other.
const PER_CLIENT: usize = 8;
const OF_UNKNOWN: usize = 1024;

/// How many streams everybody has open.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Tally<Holder>>);

impl Listeners {
    /// Lets somebody listen who wants to, unless that one does so too often already. Other requests need no place.
    pub(crate) fn admit(self: &Arc<Self>, parts: &Parts, request: &Message) -> Result<Option<Place>, Answer> {
        if request.method() != method::LISTEN {
            return Ok(None);
        }
        let holder = Holder::of(parts);
        let most = if holder == Holder::Anybody { OF_UNKNOWN } else { PER_CLIENT };
        let mut open = self.0.lock();
        if open.of(&holder) >= most {
            let whose = if holder == Holder::Anybody { "clients that do not say who they are" } else { "this client" };
            let told = format!("{whose} may have {most} streams of {} open, and no more; close one", method::LISTEN);
            let (fault, id) = (Fault::new(INTERNAL_ERROR, told), request.owned_id());
            return Err(answer::too_many(&fault, id.as_ref()));
        }
        open.add(holder.clone());
        Ok(Some(Place { listeners: Arc::clone(self), holder, result: listen::result(request) }))
    }
}

/// A place among those who listen.
#[derive(Debug)]
pub(crate) struct Place {
    listeners: Arc<Listeners>,
    holder: Holder,
    /// The answer to the request, with which its stream ends.
    result: Bytes,
}

impl Place {
    /// Gives a place to an answer, if its client listens: its stream has it while it is open, and ends with the proxy.
    pub(crate) fn give(place: Option<Self>, answer: Answer) -> Answer {
        let Some(place) = place else { return answer };
        let last = Frame { name: Some("message"), data: &place.result, ..Default::default() }.encode();
        OpenEnded::ending_with(last, place).mark(answer)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.listeners.0.lock().remove(&self.holder);
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};

    use super::*;

    #[test]
    fn a_client_has_some_streams_and_its_place_again_when_one_ends() {
        let listeners: Arc<Listeners> = Arc::default();
        let request =
            |name: &str| Message::read(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}"}}"#).into()).unwrap();
        let parts = |token: Option<&str>| {
            let post = token.into_iter().fold(Request::post("/mcp"), |post, token| post.header("authorization", token));
            post.body(()).unwrap().into_parts().0
        };
        let admit = |token| listeners.admit(&parts(token), &request(method::LISTEN));
        let mut places: Vec<_> = (0..PER_CLIENT).map(|_| admit(Some("a")).unwrap().unwrap()).collect();
        assert_eq!(admit(Some("a")).unwrap_err().status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(listeners.admit(&parts(Some("a")), &request(method::TOOLS_LIST)).unwrap().is_none());
        let others = [admit(Some("b")).unwrap(), admit(None).unwrap()];
        places.pop();
        places.push(admit(Some("a")).unwrap().unwrap());
        assert!(admit(Some("a")).is_err());
        drop((places, others));
        assert!(listeners.0.lock().is_empty());
    }
}
