//! What steps depend on fails under them: it is slow, says garbage or far too much, or has no room. The other failures are
//! tested beside each step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::json;
use skep_conformance::redis::RedisServer;
use skep_proxy::Redis;
use skep_proxy::middleware::{Audit, AuditSettings, Authentication, Bucket, CallLimits, RateLimit, RateLimits, Step};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Guarded, with_tools};
use crate::http::{Request, call};
use crate::redis::settings;

/// What comes between a proxy and its Redis.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(u8)]
enum Between {
    Nothing,
    Silence,
    Garbage,
    Megabytes,
}

/// A way to Redis on which something can come between.
struct Relay {
    address: String,
    between: Arc<AtomicU8>,
}

impl Relay {
    async fn start(redis: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let between = Arc::new(AtomicU8::new(Between::Nothing as u8));
        let (now, real) = (Arc::clone(&between), redis.address());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(relay(client, real.clone(), Arc::clone(&now)));
            }
        });
        Self { address, between }
    }

    fn put(&self, between: Between) {
        self.between.store(between as u8, Ordering::SeqCst);
    }
}

/// Carries bytes in both directions for as long as nothing comes between.
async fn relay(client: TcpStream, real: String, now: Arc<AtomicU8>) {
    let (mut asking, mut answering) = client.into_split();
    let Ok(server) = TcpStream::connect(real).await else { return };
    let (mut answers, mut questions) = server.into_split();
    let back = tokio::spawn(async move {
        // Whoever goes away first ends both.
        let _ = tokio::io::copy(&mut answers, &mut answering).await;
        answering
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = asking.read(&mut buffer).await {
        let between = now.load(Ordering::SeqCst);
        if between == Between::Nothing as u8 {
            if questions.write_all(&buffer[..length]).await.is_err() {
                return;
            }
            continue;
        }
        if between == Between::Silence as u8 {
            continue;
        }
        drop(questions);
        let Ok(mut answering) = back.await else { return };
        let said = if between == Between::Garbage as u8 {
            b"<html>\r\n".to_vec()
        } else {
            [format!("${}\r\n", 10 << 20).as_bytes(), &vec![b'x'; 10 << 20], b"\r\n"].concat()
        };
        // A client that has heard enough may be gone.
        let _ = answering.write_all(&said).await;
        return;
    }
}

#[tokio::test]
async fn nobody_is_refused_because_redis_is_silent_or_says_what_it_should_not() {
    let test = "nobody_is_refused_because_redis_is_silent_or_says_what_it_should_not";
    let Some(redis) = RedisServer::start(test) else { return };
    let relay = Relay::start(&redis).await;
    let mut way = settings(&redis);
    way.address.clone_from(&relay.address);
    let connected = Redis::connect(&way).await.unwrap();
    let bucket = Bucket { tokens: 1, period: std::time::Duration::from_hours(24 * 365) };
    let limits = RateLimits {
        namespace: "apiary".to_owned(),
        server: "hive".to_owned(),
        all: CallLimits { shared: Some(bucket), per_user: None },
        ..RateLimits::default()
    };
    let limit = RateLimit::in_redis(limits, &connected).unwrap();
    let guarded =
        Guarded::new(vec![Step::Authenticate(Authentication::Anonymous), Step::LimitRates(limit)], with_tools).await;
    let ask = async || guarded.send(Request::post(&call(1, "feed"))).await.status;
    assert_eq!(ask().await, 200);
    assert_eq!(ask().await, 429, "the bucket is empty");
    for between in [Between::Silence, Between::Garbage, Between::Megabytes] {
        relay.put(between);
        assert_eq!(ask().await, 200, "{between:?}");
    }
    relay.put(Between::Nothing);
    let counted = async { while ask().await != 429 {} };
    tokio::time::timeout(crate::http::PATIENCE, counted).await.unwrap();
}

#[tokio::test]
async fn a_disk_without_room_for_records_stops_nobody() {
    let settings = AuditSettings { file: Some("/dev/full".into()), ..AuditSettings::default() };
    let steps = vec![Step::Audit(Audit::new(settings).unwrap()), Step::Authenticate(Authentication::Anonymous)];
    let guarded = Guarded::new(steps, with_tools).await;
    for _ in 0..3 {
        let mut answer = guarded.send(Request::post(&call(1, "feed"))).await;
        assert_eq!((answer.status, answer.json().await["result"].clone()), (200, json!({"called": "feed"})));
    }
}
