//! Who goes when there are too many connections.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use skep_kube::server::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::SHORT;
use crate::running::{LIVENESS, LONG, Running, serve, until_closed};

const PLACES: usize = 20;

async fn crowded() -> Running {
    serve(Limits { connections: PLACES, idle: 10 * LONG, handshake: 10 * LONG, ..Limits::default() }).await
}

/// Reads until an answer says something.
async fn hear(stream: &mut TlsStream<TcpStream>, expected: &str) {
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains(expected) {
        let read = tokio::time::timeout(LONG, stream.read_buf(&mut said)).await.expect("an answer").unwrap();
        assert_ne!(read, 0, "the connection ended: {}", String::from_utf8_lossy(&said));
    }
}

async fn ask(stream: &mut TlsStream<TcpStream>, head: &str, expected: &str) {
    stream.write_all(format!("{head}\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    hear(stream, expected).await;
}

/// An administrator who comes, asks something and stays.
async fn visit(server: &Running) -> TlsStream<TcpStream> {
    let mut stream = tokio::time::timeout(LONG, server.connect()).await.expect("a connection");
    ask(&mut stream, "GET /api/v1/namespaces/default HTTP/1.1", "\"kind\":\"Namespace\"").await;
    stream
}

async fn watch(server: &Running) -> TlsStream<TcpStream> {
    let mut stream = server.connect().await;
    ask(&mut stream, "GET /api/v1/namespaces/default/configmaps?watch=1 HTTP/1.1", "200 OK").await;
    stream
}

async fn make_config_map(server: &Running, name: &str) {
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Default::default()
    };
    Api::<ConfigMap>::default_namespaced(server.client.clone()).create(&PostParams::default(), &map).await.unwrap();
}

#[tokio::test]
async fn strangers_who_stay_lock_nobody_out() {
    let server = crowded().await;
    let mut strangers = Vec::new();
    for _ in 0..PLACES {
        let mut stream = server.connect_stranger().await;
        ask(&mut stream, "GET /version HTTP/1.1", "gitVersion").await;
        strangers.push(stream);
    }
    let mut visitors = Vec::new();
    for _ in 0..PLACES / 2 {
        visitors.push(visit(&server).await);
    }
    // Those who came first had been quiet for longest, and those who are known stay.
    for stream in &mut strangers[..PLACES / 2] {
        until_closed(stream).await;
    }
    for stream in &mut strangers[PLACES / 2..] {
        ask(stream, "GET /version HTTP/1.1", "gitVersion").await;
    }
    for _ in 0..PLACES {
        strangers.push(tokio::time::timeout(LONG, server.connect_stranger()).await.expect("a connection"));
    }
    for stream in &mut visitors {
        ask(stream, "GET /api/v1/namespaces/default HTTP/1.1", "\"kind\":\"Namespace\"").await;
    }
}

#[tokio::test]
async fn connections_that_never_say_anything_lock_nobody_out() {
    let server = crowded().await;
    let mut silent = Vec::new();
    for number in 0..3 * PLACES {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(&[22, 3, 1, 0, 200]).await.unwrap();
        }
        silent.push(stream);
    }
    visit(&server).await;
    // Half a request on each connection.
    let mut halves = Vec::new();
    for _ in 0..PLACES {
        let mut stream = tokio::time::timeout(LONG, server.connect_stranger()).await.expect("a connection");
        stream.write_all(&LIVENESS[..20]).await.unwrap();
        halves.push(stream);
    }
    visit(&server).await;
}

#[tokio::test]
async fn watches_are_not_cut_for_others() {
    let server = crowded().await;
    let mut watches = Vec::new();
    for _ in 0..PLACES - 1 {
        watches.push(watch(&server).await);
    }
    for _ in 0..PLACES {
        visit(&server).await;
        let mut stranger = server.connect_stranger().await;
        ask(&mut stranger, "GET /version HTTP/1.1", "gitVersion").await;
    }
    make_config_map(&server, "news").await;
    for stream in &mut watches {
        hear(stream, "\"name\":\"news\"").await;
    }
}

#[tokio::test]
async fn who_has_shown_a_token_is_known() {
    let server = crowded().await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(server.client.clone());
    let bee = ServiceAccount {
        metadata: ObjectMeta { name: Some("bee".to_owned()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    };
    accounts.create(&PostParams::default(), &bee).await.unwrap();
    let request = accounts.create_token_request("bee", &PostParams::default(), &TokenRequest::default()).await.unwrap();
    let token = request.status.unwrap().token.unwrap();
    let mut stream = server.connect_stranger().await;
    let head = format!("GET /version HTTP/1.1\r\nAuthorization: Bearer {token}");
    ask(&mut stream, &head, "gitVersion").await;
    let mut strangers = Vec::new();
    for _ in 0..2 * PLACES {
        strangers.push(server.connect_stranger().await);
    }
    ask(&mut stream, &head, "gitVersion").await;
}

#[tokio::test]
async fn when_everybody_has_something_to_do_a_new_one_waits_for_the_first_to_end() {
    let server = crowded().await;
    let mut watches = Vec::new();
    for _ in 0..PLACES {
        watches.push(watch(&server).await);
    }
    let next = visit(&server);
    tokio::pin!(next);
    assert!(tokio::time::timeout(SHORT, next.as_mut()).await.is_err(), "there is one too many");
    drop(watches.pop());
    tokio::time::timeout(LONG, next).await.unwrap();
    make_config_map(&server, "news").await;
    for stream in &mut watches {
        hear(stream, "\"name\":\"news\"").await;
    }
}
