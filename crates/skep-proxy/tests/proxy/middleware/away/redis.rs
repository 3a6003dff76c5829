//! A Redis that counts calls, and what comes between it and a proxy.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use skep_conformance::redis::RedisServer;
use skep_proxy::Redis;
use skep_proxy::middleware::{Authentication, Bucket, CallLimits, RateLimit, RateLimits, Step};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tracing::Level;

use super::super::{Guarded, with_tools};
use super::fault::{Fault, MEGABYTES};
use crate::http::{Request, call};
use crate::redis::settings;
use crate::warnings::Warnings;

/// What comes between, if anything does.
type Between = Arc<Mutex<Option<Fault>>>;

/// A way to Redis on which something can come between.
struct Relay {
    address: SocketAddr,
    real: String,
    between: Between,
    way: Way,
}

enum Way {
    Open(JoinHandle<()>),
    /// The address is nobody else's, and nobody listens there.
    Closed(TcpSocket),
}

impl Relay {
    async fn start(redis: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, between, real) = (listener.local_addr().unwrap(), Between::default(), redis.address());
        let way = Way::Open(tokio::spawn(accept(listener, real.clone(), Arc::clone(&between))));
        Self { address, real, between, way }
    }

    /// Has this come between, and nothing else.
    async fn put(&mut self, fault: Option<Fault>) {
        *self.between.lock().unwrap() = fault;
        match &mut self.way {
            Way::Open(accepting) if fault == Some(Fault::Absence) => {
                accepting.abort();
                // It ends with all of its connections.
                let _ = accepting.await;
                self.way = Way::Closed(self.bound());
            }
            Way::Closed(socket) if fault != Some(Fault::Absence) => {
                let listener = std::mem::replace(socket, TcpSocket::new_v4().unwrap()).listen(64).unwrap();
                self.way = Way::Open(tokio::spawn(accept(listener, self.real.clone(), Arc::clone(&self.between))));
            }
            Way::Open(_) | Way::Closed(_) => {}
        }
    }

    fn bound(&self) -> TcpSocket {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.address).unwrap();
        socket
    }
}

async fn accept(listener: TcpListener, real: String, between: Between) {
    let mut relays = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        relays.spawn(relay(client, real.clone(), Arc::clone(&between)));
    }
}

/// Carries bytes in both directions for as long as nothing comes between.
async fn relay(client: TcpStream, real: String, now: Between) {
    let (mut asking, mut answering) = client.into_split();
    let Ok(server) = TcpStream::connect(real).await else { return };
    let (mut answers, mut questions) = server.into_split();
    let mut back = JoinSet::new();
    back.spawn(async move {
        // Whoever goes away first ends both.
        let _ = tokio::io::copy(&mut answers, &mut answering).await;
        answering
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = asking.read(&mut buffer).await {
        let mut between = *now.lock().unwrap();
        while between == Some(Fault::Silence) {
            // What was asked is not lost, and answered when somebody speaks again.
            tokio::time::sleep(Duration::from_millis(5)).await;
            between = *now.lock().unwrap();
        }
        let said = match between {
            None => {
                if questions.write_all(&buffer[..length]).await.is_err() {
                    return;
                }
                continue;
            }
            Some(Fault::Silence | Fault::Absence) => return,
            Some(Fault::Garbage) => b"<html>\r\n".to_vec(),
            Some(Fault::Megabytes) => {
                [format!("${MEGABYTES}\r\n").as_bytes(), &vec![b'x'; MEGABYTES], b"\r\n"].concat()
            }
        };
        drop(questions);
        let Some(Ok(mut answering)) = back.join_next().await else { return };
        // A client that has heard enough may be gone.
        let _ = answering.write_all(&said).await;
        return;
    }
}

/// Calls that all have one bucket, in a Redis that is reached by a way on which something can come between.
async fn counted(redis: &RedisServer, relay: &Relay, tokens: u32) -> Guarded {
    let mut way = settings(redis);
    way.address = relay.address.to_string();
    let connected = Redis::connect(&way).await.unwrap();
    let bucket = Bucket { tokens, period: Duration::from_hours(24 * 365) };
    let limits = RateLimits {
        namespace: "apiary".to_owned(),
        server: "hive".to_owned(),
        all: CallLimits { shared: Some(bucket), per_user: None },
        ..RateLimits::default()
    };
    let limit = RateLimit::in_redis(limits, &connected).unwrap();
    Guarded::new(vec![Step::Authenticate(Authentication::Anonymous), Step::LimitRates(limit)], with_tools).await
}

#[tokio::test]
async fn that_redis_is_away_is_told_once_and_so_is_that_it_is_back() {
    let Some(redis) = RedisServer::start("that_redis_is_away_is_told_once_and_so_is_that_it_is_back") else { return };
    let mut relay = Relay::start(&redis).await;
    let guarded = counted(&redis, &relay, 1000).await;
    let log = Warnings::down_to(Level::INFO);
    let told = || log.take().into_iter().filter(|text| text.contains("limits ca")).collect::<Vec<_>>();
    let ask = async || assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 200);
    ask().await;
    assert!(told().is_empty());
    relay.put(Some(Fault::Absence)).await;
    for _ in 0..5 {
        ask().await;
    }
    let away = told();
    assert!(away.len() == 1 && away[0].contains("limits cannot be asked for, and calls pass"), "{away:?}");
    relay.put(None).await;
    let back = async {
        loop {
            ask().await;
            let told = told();
            if !told.is_empty() {
                break told;
            }
        }
    };
    let back = tokio::time::timeout(crate::http::PATIENCE, back).await.unwrap();
    assert!(back.len() == 1 && back[0].contains("limits can be asked for again"), "{back:?}");
    ask().await;
    assert!(told().is_empty());
}

#[tokio::test]
async fn nobody_is_refused_because_redis_is_away_or_says_what_it_should_not() {
    let test = "nobody_is_refused_because_redis_is_away_or_says_what_it_should_not";
    let Some(redis) = RedisServer::start(test) else { return };
    let mut relay = Relay::start(&redis).await;
    let guarded = counted(&redis, &relay, 1).await;
    let ask = async || {
        let mut answer = guarded.send(Request::post(&call(1, "feed"))).await;
        (answer.status, answer.header("retry-after").is_some(), answer.json().await["result"].clone())
    };
    let served = (200, false, json!({"called": "feed"}));
    assert_eq!(ask().await, served);
    assert_eq!(ask().await.0, 429, "the bucket is empty");
    for fault in Fault::ALL {
        relay.put(Some(fault)).await;
        assert_eq!(ask().await, served, "{fault:?}");
        relay.put(None).await;
        // It counts on where it was.
        let counted = async { while ask().await.0 != 429 {} };
        tokio::time::timeout(crate::http::PATIENCE, counted)
            .await
            .unwrap_or_else(|_| panic!("{fault:?}: nothing is counted"));
        assert_eq!(ask().await, (429, true, serde_json::Value::Null), "{fault:?}");
    }
}
