//! Where requests go.

use http::Request;
use skep_mcp::era::Era;
use skep_mcp::{Revision, header};

use super::keeping::BACKEND_URL;
use super::*;
use crate::sessions::{Kind, Session};

/// A request in a session whose server was at another address than the one that all are reached by.
fn pinned(handshake: Option<Revision>, era: Era) -> (Parts, Known) {
    let mut session = Session::new("s", Kind::Transparent, Revision::November2025, None);
    session.metadata.insert(BACKEND_URL.to_owned(), "http://10.0.0.9:8080".to_owned());
    let (parts, ()) = Request::post("/mcp").header(header::SESSION_ID, "s").body(()).unwrap().into_parts();
    let (session, caller) = (Some(session.into()), None);
    (parts, Known { era: Some(era), handshake, session, caller, body: "{}".into(), payload: None, alone: None })
}

#[tokio::test]
async fn trap_19_whoever_begins_anew_is_not_sent_to_a_server_that_may_be_gone() {
    let target = Target::local(Dialect::Streamable, "http://mcp-a:8080").unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let peer = Peer { address: ([127, 0, 0, 1], 5).into(), scheme: "http" };
    for (handshake, era, expected) in [
        (None, Era::Legacy, "http://10.0.0.9:8080/mcp"),
        (Some(Revision::November2025), Era::Legacy, "http://mcp-a:8080/mcp"),
        (None, Era::Modern, "http://mcp-a:8080/mcp"),
    ] {
        let (parts, known) = pinned(handshake, era);
        let outgoing = transparent.outgoing(peer, parts, &known).unwrap();
        assert_eq!(outgoing.uri, expected, "{handshake:?} {era:?}");
        assert_eq!(outgoing.headers.contains_key(header::SESSION_ID), expected.contains("10.0.0.9"));
    }
}
