//! What answers say about a server, and for how long that is believed.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;

use super::super::line::Replies;
use super::*;

/// A server that says of itself what it is told to, and how often it was asked.
#[derive(Clone)]
struct Saying {
    versions: &'static str,
    asked: Arc<AtomicUsize>,
}

impl Saying {
    fn new(versions: &'static str) -> Self {
        Self { versions, asked: Arc::default() }
    }
}

impl Line for Saying {
    fn ask<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, Result<Replies, Lost>> {
        Box::pin(std::future::ready(Err(Lost::Unreached)))
    }

    fn hear<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, Result<Message, Lost>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let text = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"supportedVersions":["{}"]}}}}"#, self.versions);
        Box::pin(std::future::ready(Ok(Message::read(text.into()).unwrap())))
    }

    fn tell(&self, _: Bytes) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }

    fn overhear(&self) -> BoxFuture<'_, Option<Replies>> {
        Box::pin(std::future::ready(None))
    }

    fn doubt(&self) {}
}

#[test]
fn answers_tell_the_era() {
    let judged = |text: &'static str| {
        let message = Message::read(bytes::Bytes::from_static(text.as_bytes())).unwrap();
        judge(&message).map_err(|_| ())
    };
    for (text, expected) in [
        (r#"{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28"]}}"#, Ok(Verdict::Modern)),
        (r#"{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2025-11-25"]}}"#, Ok(Verdict::Legacy)),
        (r#"{"jsonrpc":"2.0","id":0,"result":{}}"#, Ok(Verdict::Legacy)),
        (r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":""}}"#, Ok(Verdict::Legacy)),
        (r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32020,"message":""}}"#, Ok(Verdict::Modern)),
        (
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"","data":{"supported":["2025-06-18"]}}}"#,
            Ok(Verdict::Legacy),
        ),
        (
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"","data":{"supported":["2031-01-01"]}}}"#,
            Err(()),
        ),
    ] {
        assert_eq!(judged(text), expected, "{text}");
    }
}

#[test]
fn a_verdict_is_kept_until_it_looks_wrong() {
    let eras = Eras::default();
    *eras.known.lock() = Some((Verdict::Modern, Instant::now()));
    eras.suspect();
    assert_eq!(eras.known(), Some(Verdict::Modern), "it was found out just now");
    eras.forget();
    assert_eq!(eras.known(), None);
}

#[tokio::test]
async fn what_may_be_out_of_date_is_found_out_while_nobody_waits() {
    let (eras, line) = (Arc::new(Eras::default()), Saying::new("2026-07-28"));
    *eras.known.lock() = Some((Verdict::Legacy, Instant::now().checked_sub(GOOD_FOR).unwrap()));
    assert_eq!(eras.verdict(&line).await.unwrap(), Verdict::Legacy, "nobody waits");
    assert_eq!(eras.verdict(&line).await.unwrap(), Verdict::Legacy, "and it is asked once");
    let found = async {
        while eras.known() != Some(Verdict::Modern) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), found).await.unwrap();
    assert_eq!(line.asked.load(Ordering::Relaxed), 1);
    // A process does not become another one.
    let eras = Eras::of_process();
    *eras.known.lock() = Some((Verdict::Legacy, Instant::now().checked_sub(GOOD_FOR).unwrap()));
    eras.verdict(&line).await.unwrap();
    assert!(!eras.begins_renewal());
}

#[tokio::test]
async fn a_server_that_looks_like_another_one_is_asked_at_once_but_not_again_and_again() {
    let (eras, line) = (Eras::default(), Saying::new("2025-11-25"));
    *eras.known.lock() = Some((Verdict::Modern, Instant::now()));
    for _ in 0..3 {
        assert_eq!(eras.doubt(&line).await, Some(Verdict::Legacy));
    }
    assert_eq!(line.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_server_is_never_asked_what_somebody_has_said() {
    for (era, verdict) in [(BackendEra::Legacy, Verdict::Legacy), (BackendEra::Modern, Verdict::Modern)] {
        let (eras, line) = (Arc::new(Eras::default()), Saying::new("2025-11-25"));
        eras.say(BackendEra::Auto);
        assert_eq!(eras.known(), None);
        eras.say(era);
        eras.refused_handshake();
        eras.forget();
        eras.suspect();
        assert_eq!(eras.verdict(&line).await.unwrap(), verdict);
        assert_eq!(eras.doubt(&line).await, Some(verdict));
        assert_eq!(eras.refuses_handshakes(), verdict == Verdict::Modern, "its clients are helped at once");
        assert_eq!(eras.status().map(|status| (status.verdict, status.changes)), Some((verdict, 0)));
        assert_eq!(line.asked.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn what_was_found_out_and_when_is_told() {
    let (eras, line) = (Arc::new(Eras::default()), Saying::new("2026-07-28"));
    assert_eq!(eras.status(), None);
    eras.learn(Verdict::Legacy);
    eras.forget();
    eras.verdict(&line).await.unwrap();
    let status = eras.status().unwrap();
    assert_eq!((status.verdict, status.changes), (Verdict::Modern, 1), "also across what was forgotten");
    assert!(status.age < Duration::from_secs(30));
}

#[test]
fn only_what_no_server_of_the_era_would_say_is_strange() {
    let error =
        |code: i64| Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":""}}}}"#));
    for (status, body, expected) in [
        (StatusCode::NOT_FOUND, error(METHOD_NOT_FOUND), false),
        (StatusCode::NOT_FOUND, error(-32001), true),
        (StatusCode::NOT_FOUND, Bytes::from_static(b"404 page not found"), true),
        (StatusCode::BAD_REQUEST, error(HEADER_MISMATCH), false),
        (StatusCode::BAD_REQUEST, error(MISSING_CAPABILITY), false),
        (StatusCode::BAD_REQUEST, error(INVALID_PARAMS), false),
        (StatusCode::BAD_REQUEST, error(UNSUPPORTED_REVISION), true),
        (StatusCode::BAD_REQUEST, error(-32000), true),
        (StatusCode::BAD_REQUEST, Bytes::from_static(b"no"), true),
        (StatusCode::METHOD_NOT_ALLOWED, Bytes::new(), true),
        (StatusCode::CONFLICT, Bytes::new(), false),
    ] {
        assert_eq!(is_strange(status, &body), expected, "{status} {body:?}");
    }
}
