//! When sessions in a real Redis begin and end, and how many one client may have there.

use std::time::Duration;

use redis::Commands as _;
use serde_json::{Value, json};
use skep_conformance::redis::RedisServer;
use skep_proxy::{Limits, Proxy};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::bridge::server::{Setup, limits};
use crate::eras::stands_alone;
use crate::http::{Request, call, initialize};
use crate::redis::{SESSIONS, before, keeping, look, store};
use crate::transparent::server::{Before, Server, reply, with_sessions};

/// The sets that sessions are counted in.
const SETS: &str = "thv:proxy:session:of:*";
/// What a server calls a session.
const OF_A_SERVER: &str = "7D444840-9DC0-11D1-B245-5FFDCE74FAD2";

async fn begin(proxy: &Before) -> String {
    let begun = proxy.send(Request::post(&initialize("2025-11-25"))).await;
    begun.header("mcp-session-id").unwrap().to_owned()
}

async fn used(proxy: &Before, session: &str) -> u16 {
    proxy.send(Request::post(&call(1, "x")).in_session(session)).await.status
}

/// Writes another beginning into the only session, which ends in a minute then.
fn began(looking: &mut redis::Connection, began: Option<OffsetDateTime>) -> String {
    let [key] = looking.keys::<_, Vec<String>>(SESSIONS).unwrap().try_into().unwrap();
    let mut record: Value = serde_json::from_str(&looking.get::<_, String>(&key).unwrap()).unwrap();
    match began {
        Some(began) => record["created_at"] = json!(began.format(&Rfc3339).unwrap()),
        None => drop(record.as_object_mut().unwrap().remove("created_at")),
    }
    let _: () = looking.set_ex(&key, record.to_string(), 60).unwrap();
    key
}

#[tokio::test]
async fn trap_68_sessions_of_one_id_that_begin_at_once_are_one() {
    let Some(redis) = RedisServer::start("trap_68_sessions_of_one_id_that_begin_at_once_are_one") else { return };
    let server = Server::start(|seen| match seen.method.as_str() {
        "OPTIONS" => reply(204, &[], ""),
        _ => reply(200, &[("content-type", "application/json"), ("mcp-session-id", "same")], "{}"),
    })
    .await;
    let proxies = [before(&redis, &server).await, before(&redis, &server).await];
    let begin = |number: usize| proxies[number % 2].send(Request::post(&initialize("2025-11-25")));
    for response in futures::future::join_all((0..20).map(begin)).await {
        assert_eq!((response.status, response.header("mcp-session-id")), (200, Some("same")));
    }
    assert_eq!(look(&redis).keys::<_, Vec<String>>(SESSIONS).unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_that_we_began_has_one_name() {
    let Some(redis) = RedisServer::start("a_session_that_we_began_has_one_name") else { return };
    let mut bridge = Setup::new(limits(), store(&redis).await, Proxy::streamable).await;
    let (_server, session) = bridge.begin().await;
    let mut stream = bridge.send(Request::listen(&session)).await;
    // All of these are the same number.
    let simple = session.replace('-', "");
    for other in [session.to_uppercase(), format!("{{{session}}}"), format!("urn:uuid:{session}"), simple] {
        for named in [Request::listen(&other), Request::new("DELETE", "/mcp").in_session(&other)] {
            assert_eq!(bridge.send(named).await.status, 404, "{other}");
        }
    }
    assert_eq!(bridge.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status, 204);
    assert_eq!(stream.message().await, None);
    // The same before a server that knows no sessions.
    let server = Server::start(stands_alone).await;
    let proxy = before(&redis, &server).await;
    let session = begin(&proxy).await;
    assert_eq!(used(&proxy, &session.to_uppercase()).await, 404);
    assert_eq!(used(&proxy, &session).await, 200);
    // Servers call theirs what they like.
    let server = Server::start(|seen| match seen.method.as_str() {
        "OPTIONS" => reply(204, &[], ""),
        _ => reply(200, &[("content-type", "application/json"), ("mcp-session-id", OF_A_SERVER)], "{}"),
    })
    .await;
    let proxy = before(&redis, &server).await;
    assert_eq!(begin(&proxy).await, OF_A_SERVER);
    assert_eq!(used(&proxy, OF_A_SERVER).await, 200);
}

#[tokio::test]
async fn a_session_that_is_used_all_the_time_ends_a_day_after_it_began() {
    let Some(redis) = RedisServer::start("a_session_that_is_used_all_the_time_ends_a_day_after_it_began") else {
        return;
    };
    let server = Server::start(with_sessions("a")).await;
    let (first, second) = (before(&redis, &server).await, before(&redis, &server).await);
    let session = begin(&first).await;
    let mut looking = look(&redis);
    let now = OffsetDateTime::now_utc();
    let key = began(&mut looking, Some(now - Duration::from_hours(23)));
    assert_eq!(used(&second, &session).await, 200);
    assert!((3500..=3600).contains(&looking.ttl::<_, i64>(&key).unwrap()), "it lives for one more hour");
    // A store that was not told so by others keeps it for longer.
    began(&mut looking, Some(now - Duration::from_hours(24)));
    server.seen();
    assert_eq!(used(&first, &session).await, 404);
    assert!(server.seen().is_empty());
    assert_eq!(looking.keys::<_, Vec<String>>("*").unwrap(), Vec::<String>::new(), "nothing is left of it");
    assert_eq!(used(&second, &session).await, 404);
}

#[tokio::test]
async fn a_session_that_does_not_say_when_it_began_lives_for_as_long_as_it_is_used() {
    let Some(redis) = RedisServer::start("a_session_that_does_not_say_when_it_began_lives_for_as_long_as_it_is_used")
    else {
        return;
    };
    let server = Server::start(with_sessions("a")).await;
    let proxy = before(&redis, &server).await;
    let session = begin(&proxy).await;
    let mut looking = look(&redis);
    for unclear in [None, Some(OffsetDateTime::UNIX_EPOCH)] {
        let key = began(&mut looking, unclear);
        assert_eq!(used(&proxy, &session).await, 200);
        assert!(looking.ttl::<_, i64>(&key).unwrap() > 7000);
    }
}

#[tokio::test]
async fn a_client_with_many_sessions_loses_those_that_were_idle_the_longest() {
    let Some(redis) = RedisServer::start("a_client_with_many_sessions_loses_those_that_were_idle_the_longest") else {
        return;
    };
    let server = Server::start(with_sessions("a")).await;
    let limits = Limits { sessions_each: 3, ..Limits::default() };
    let first = keeping(store(&redis).await, &server, limits.clone()).await;
    let second = keeping(store(&redis).await, &server, limits).await;
    let mut sessions = Vec::new();
    for proxy in [&first, &second, &first, &second, &first] {
        sessions.push(begin(proxy).await);
    }
    let mut looking = look(&redis);
    for (session, status) in sessions.iter().zip([404, 404, 200, 200, 200]) {
        assert_eq!(used(&first, session).await, status, "{session}");
    }
    assert_eq!(looking.keys::<_, Vec<String>>(SESSIONS).unwrap().len(), 3);
    let [set] = looking.keys::<_, Vec<String>>(SETS).unwrap().try_into().unwrap();
    assert_eq!(set, "thv:proxy:session:of:127.0.0.1");
    assert!((7100..=7200).contains(&looking.ttl::<_, i64>(&set).unwrap()), "it ends with the sessions");

    // The oldest one is used after it was idle for long, and another one is the oldest then.
    let [oldest, ..]: [String; 3] = looking.zrange::<_, Vec<String>>(&set, 0, -1).unwrap().try_into().unwrap();
    let _: () = looking.expire(format!("thv:proxy:session:{oldest}"), 60).unwrap();
    assert_eq!(used(&second, &sessions[2]).await, 200);
    begin(&second).await;
    assert_eq!((used(&first, &sessions[2]).await, used(&first, &sessions[3]).await), (200, 404));

    // Sessions that ended by themselves, or were ended, do not count.
    let all: Vec<String> = looking.zrange(&set, 0, -1).unwrap();
    for idle in &all[..2] {
        let _: () = looking.del(format!("thv:proxy:session:{idle}")).unwrap();
        let _: () = looking.zadd(&set, idle, 1).unwrap();
    }
    let last = begin(&first).await;
    assert_eq!(looking.zcard::<_, usize>(&set).unwrap(), 2);
    assert_eq!(second.send(Request::new("DELETE", "/mcp").in_session(&last)).await.status, 204);
    assert_eq!(looking.zrange::<_, Vec<String>>(&set, 0, -1).unwrap(), all[2..]);
}
