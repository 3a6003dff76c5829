//! Where requests go.

use http::request::Parts;
use http::{Request, StatusCode};
use skep_mcp::era::Era;
use skep_mcp::{Revision, header};

use super::keeping::BACKEND_URL;
use super::look::Known;
use super::upstream::Outgoing;
use super::*;
use crate::listener::Peer;
use crate::sessions::{Kind, Session};
use crate::upload::Upload;

/// A request in a session whose server was at another address than the one that all are reached by.
fn pinned(handshake: Option<Revision>, era: Era) -> (Parts, Known) {
    let mut session = Session::new("s", Kind::Transparent, Revision::November2025, None);
    session.metadata.insert(BACKEND_URL.to_owned(), "http://10.0.0.9:8080".to_owned());
    let (parts, ()) = Request::post("/mcp").header(header::SESSION_ID, "s").body(()).unwrap().into_parts();
    let (session, caller) = (Some(session.into()), None);
    let (body, payload) = ("{}".into(), None);
    (
        parts,
        Known {
            era: Some(era),
            handshake,
            session,
            caller,
            address: None,
            body,
            subject: None,
            payload,
            between: None,
            has_tasks: false,
            alone: None,
        },
    )
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
        let (mut parts, known) = pinned(handshake, era);
        let outgoing = transparent.outgoing(peer, &mut parts, &known).unwrap();
        assert_eq!(outgoing.uri, expected, "{handshake:?} {era:?}");
        assert_eq!(outgoing.headers.contains_key(header::SESSION_ID), expected.contains("10.0.0.9"));
    }
}

/// A name leads to a server when a proxy starts, and to where a cloud answers machines about themselves later on.
#[tokio::test]
async fn a_server_whose_name_leads_elsewhere_later_on_is_not_asked() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await.unwrap();
        drop(stream);
        // Whatever comes now was not to come.
        listener.accept().await.map(drop)
    });
    let target = Target::remote(Dialect::Streamable, "http://rebound.example/mcp").unwrap().allowing_private();
    for later in ["169.254.169.254", "::ffff:169.254.169.254"] {
        let later = std::net::SocketAddr::new(later.parse().unwrap(), place.port());
        let resolver = target.resolver().finding(vec![later]);
        let upstream = Upstream::resolving(&target, &Limits::default(), resolver).unwrap();
        assert!(upstream.send(&post(&target)).await.is_err_and(|failed| failed.is_unreached), "{later}");
    }
    let resolver = target.resolver().finding(vec![place, ([169, 254, 169, 254], place.port()).into()]);
    let upstream = Upstream::resolving(&target, &Limits::default(), resolver).unwrap();
    assert_eq!(upstream.send(&post(&target)).await.unwrap().status(), StatusCode::ACCEPTED);
    assert!(upstream.send(&post(&target)).await.is_err_and(|failed| failed.is_unreached));
    assert!(!answering.is_finished());
    answering.abort();
}

fn post(target: &Target) -> Outgoing {
    Outgoing {
        method: Method::POST,
        uri: format!("{}/mcp", target.origin()).parse().unwrap(),
        headers: HeaderMap::new(),
        body: "{}".into(),
        signer: None,
    }
}

/// What is rare is in boxes, so that the usual request needs no room for it.
#[tokio::test]
async fn a_request_on_its_way_takes_little_room() {
    let target = Target::local(Dialect::Streamable, "http://mcp-a:8080").unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let peer = Peer { address: ([127, 0, 0, 1], 5).into(), scheme: "http" };
    let (parts, _) = pinned(None, Era::Legacy);
    let request = Request::from_parts(parts, Upload::Read(crate::upload::Sent::default()));
    let limits = Limits::default();
    let room = size_of_val(&transparent.pass(Exchange::new(peer, request, &limits)));
    assert!(room <= 3 << 10, "{room} bytes");
}
