use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::transparent::{Dialect, Target};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhoney";

/// What a connection of the server went through.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Opened,
    Asked,
    Closed,
}

/// A server that answers everything with `answer`, so many times on a connection, and says what happens.
async fn server(answer: &'static [u8], times: usize) -> (Uri, mpsc::UnboundedReceiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tell.send(Seen::Opened).unwrap();
            let tell = tell.clone();
            tokio::spawn(async move {
                for _ in 0..times {
                    if stream.read(&mut [0; 4096]).await.unwrap_or(0) == 0 {
                        break;
                    }
                    let _ = tell.send(Seen::Asked);
                    let _ = stream.write_all(answer).await;
                }
                drop(stream);
                let _ = tell.send(Seen::Closed);
            });
        }
    });
    (format!("http://{address}/mcp").parse().unwrap(), seen)
}

fn lines(patience: Duration) -> Lines {
    let target = Target::local(Dialect::Streamable, "http://127.0.0.1:1").unwrap();
    Lines::new(HttpConnector::new_with_resolver(target.resolver()), patience)
}

async fn ask(lines: &Lines, uri: &Uri) -> Response<FromServer> {
    let request = Request::post(uri.clone()).body(Full::new(Bytes::from_static(b"{}"))).unwrap();
    lines.send(&mut Leaving::new(request).unwrap()).await.unwrap()
}

async fn text(answer: Response<FromServer>) -> Bytes {
    answer.into_body().collect().await.unwrap().to_bytes()
}

fn so_far(seen: &mut mpsc::UnboundedReceiver<Seen>) -> Vec<Seen> {
    std::iter::from_fn(|| seen.try_recv().ok()).collect()
}

#[tokio::test]
async fn one_connection_serves_one_request_after_the_other() {
    let (uri, mut seen) = server(ANSWER, usize::MAX).await;
    let lines = lines(Duration::from_mins(1));
    for _ in 0..10 {
        assert_eq!(text(ask(&lines, &uri).await).await, "honey");
    }
    let seen = so_far(&mut seen);
    assert_eq!((seen.len(), &seen[0]), (11, &Seen::Opened), "{seen:?}");
    let (one, other) = tokio::join!(ask(&lines, &uri), ask(&lines, &uri));
    assert_eq!((text(one).await, text(other).await), ("honey".into(), "honey".into()));
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_not_used_again() {
    let (uri, mut seen) = server(ANSWER, 1).await;
    let lines = lines(Duration::from_mins(1));
    for _ in 0..10 {
        assert_eq!(text(ask(&lines, &uri).await).await, "honey");
        while seen.recv().await != Some(Seen::Closed) {}
    }
}

#[tokio::test]
async fn whoever_wants_no_more_of_an_answer_closes_its_connection() {
    let (uri, mut seen) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhon", usize::MAX).await;
    let answer = ask(&lines(Duration::from_mins(1)), &uri).await;
    assert_eq!(answer.status(), 200);
    drop(answer);
    while seen.recv().await != Some(Seen::Closed) {}
}

#[tokio::test]
async fn connections_that_nobody_uses_for_long_are_closed() {
    let (uri, mut seen) = server(ANSWER, usize::MAX).await;
    let (patient, impatient) = (lines(Duration::from_mins(1)), lines(Duration::ZERO));
    for lines in [&patient, &impatient] {
        text(ask(lines, &uri).await).await;
        lines.sweep();
    }
    assert_eq!(patient.idle.places.lock().len(), 1);
    assert!(impatient.idle.places.lock().is_empty());
    while seen.recv().await != Some(Seen::Closed) {}
}

#[tokio::test]
async fn a_server_that_says_that_it_closes_is_believed() {
    let (uri, mut seen) = server(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 2).await;
    let lines = lines(Duration::from_mins(1));
    for _ in 0..3 {
        assert_eq!(ask(&lines, &uri).await.status(), 202);
    }
    let seen = so_far(&mut seen);
    assert_eq!(seen.iter().filter(|seen| **seen == Seen::Opened).count(), 3, "{seen:?}");
}
