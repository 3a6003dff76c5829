//! A task belongs to whoever began it. To anybody else it is not there, even when they know its id.

use std::sync::Mutex;

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::sessions::Users;
use crate::eras::stands_alone;
use crate::http::{Request, initialize, modern, request};
use crate::middleware::Guarded;
use crate::transparent::dialled::{Streams, on_sse, say};
use crate::transparent::server::{Reply, Seen, reply};

/// A server whose calls become one task, which it shows to everybody.
fn with_a_task(seen: &Seen) -> Reply {
    let message = seen.json();
    let result = |result: Value| {
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        reply(200, &[("content-type", "application/json")], body.to_string())
    };
    match message["method"].as_str() {
        Some("tools/call") => result(json!({"resultType": "task", "taskId": "t-1", "status": "working"})),
        Some("tasks/get") => {
            assert_eq!((&message["params"]["taskId"], seen.header("mcp-name")), (&json!("t-1"), Some("t-1")));
            result(json!({"resultType": "complete", "taskId": "t-1", "status": "working"}))
        }
        _ => stands_alone(seen),
    }
}

fn get(id: &str) -> Request {
    modern(2, "tasks/get", json!({"taskId": id})).header("Mcp-Name", id)
}

#[tokio::test]
async fn rule_27_what_a_server_calls_a_task_is_of_no_use_to_others() {
    let users = Users::new().await;
    let guarded = Guarded::new(users.steps(), with_a_task).await;
    let call = users.as_user("ann", modern(1, "tools/call", json!({"name": "a"})));
    let begun = guarded.send(call).await.json().await["result"].clone();
    let id = begun["taskId"].as_str().unwrap().to_owned();
    assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")));
    let seen = guarded.send(users.as_user("ann", get(&id))).await.json().await["result"].clone();
    assert_eq!((&seen["taskId"], &seen["status"]), (&json!(id), &json!("working")));
    guarded.server.seen();
    for (user, id) in [("bob", id.as_str()), ("bob", "t-1"), ("ann", "t-1"), ("ann", "other")] {
        let told = guarded.send(users.as_user(user, get(id))).await.json().await;
        let error = json!({"code": -32602, "message": "Task not found"});
        assert_eq!((&told["id"], &told["error"]), (&json!(2), &error), "{user}");
    }
    assert!(guarded.server.seen().is_empty());
}

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A server of sessions that shows the tasks of all sessions in each of them.
fn with_tasks_of_all() -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let (sessions, tasks) = (Mutex::new(0), Mutex::new(Vec::<Value>::new()));
    move |seen| {
        let message = seen.json();
        let answer = |headers: &[(&str, &str)], result: &Value| {
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            reply(200, &[headers, &[("content-type", "application/json")]].concat(), body.to_string())
        };
        let (name, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
        let mut tasks = tasks.lock().unwrap();
        if name.starts_with("tasks/") && name != "tasks/list" {
            let is_known = tasks.iter().any(|task| task["taskId"] == params["taskId"]);
            assert!(is_known, "it is asked in its own words: {message}");
        }
        match name {
            "initialize" => {
                let mut sessions = sessions.lock().unwrap();
                *sessions += 1;
                let result =
                    json!({"protocolVersion": params["protocolVersion"], "capabilities": {"tasks": {"list": {}}}});
                answer(&[("mcp-session-id", &format!("s-{sessions}"))], &result)
            }
            "tools/call" if params.get("task").is_some() => {
                let task = json!({"taskId": format!("t-{}", tasks.len()), "status": "working"});
                tasks.push(task.clone());
                answer(&[], &json!({"task": task}))
            }
            "tasks/get" | "tasks/cancel" => answer(&[], &json!({"taskId": params["taskId"], "status": "working"})),
            "tasks/result" => answer(&[], &json!({"content": [], "_meta": {RELATED: {"taskId": params["taskId"]}}})),
            "tasks/list" => answer(&[], &json!({"tasks": *tasks})),
            _ if seen.method == "GET" => {
                let params = json!({"taskId": "t-0", "status": "completed"});
                let told = json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params});
                let events = format!("event: message\ndata: {told}\n\n");
                reply(200, &[("content-type", "text/event-stream")], events)
            }
            _ => reply(202, &[], ""),
        }
    }
}

/// Sessions of users at one proxy.
struct InSessions {
    users: Users,
    guarded: Guarded,
}

impl InSessions {
    async fn begin(&self, user: &str) -> String {
        let opened = self.guarded.send(self.users.as_user(user, Request::post(&initialize("2025-11-25")))).await;
        opened.header("mcp-session-id").unwrap().to_owned()
    }

    async fn ask(&self, user: &str, session: &str, name: &str, params: &Value) -> Value {
        let post = Request::post(&request(7, name, params)).in_session(session);
        self.guarded.send(self.users.as_user(user, post)).await.json().await
    }
}

#[tokio::test]
async fn rule_27_the_task_of_one_session_is_of_no_use_to_others_who_share_the_server() {
    let users = Users::new().await;
    let guarded = Guarded::new(users.steps(), with_tasks_of_all()).await;
    let all = InSessions { users, guarded };
    let (ann, bob) = (all.begin("ann").await, all.begin("bob").await);
    let call = json!({"name": "a", "task": {"ttl": 1}});
    let begun = all.ask("ann", &ann, "tools/call", &call).await["result"]["task"].clone();
    let id = begun["taskId"].as_str().unwrap().to_owned();
    assert_eq!(begun["status"], "working");
    // Her own sessions know it, whichever it is.
    let later = all.begin("ann").await;
    for session in [&ann, &later] {
        for name in ["tasks/get", "tasks/cancel"] {
            assert_eq!(all.ask("ann", session, name, &json!({"taskId": id})).await["result"]["taskId"], json!(id));
        }
        let result = all.ask("ann", session, "tasks/result", &json!({"taskId": id})).await["result"].clone();
        assert_eq!(result["_meta"][RELATED]["taskId"], json!(id));
        let listed = all.ask("ann", session, "tasks/list", &json!({})).await["result"]["tasks"].clone();
        assert_eq!(listed, json!([{"taskId": id, "status": "working"}]));
    }
    let listen = all.users.as_user("ann", Request::listen(&ann));
    let told = all.guarded.send(listen).await.message().await.unwrap();
    assert_eq!(told["params"], json!({"taskId": id, "status": "completed"}));
    assert_eq!(all.ask("bob", &bob, "tasks/list", &json!({})).await["result"]["tasks"], json!([]));
    all.guarded.server.seen();
    for (user, session, named) in [("bob", &bob, &*id), ("bob", &bob, "t-0"), ("ann", &ann, "t-0")] {
        let related = json!({"name": "a", "_meta": {RELATED: {"taskId": named}}});
        let named = json!({"taskId": named});
        for (name, params) in
            [("tasks/get", &named), ("tasks/result", &named), ("tasks/cancel", &named), ("tools/call", &related)]
        {
            let refused = all.ask(user, session, name, params).await;
            let error = json!({"code": -32602, "message": "Task not found"});
            assert_eq!((&refused["id"], &refused["error"]), (&json!(7), &error), "{user} {name}");
        }
    }
    // Not in another form, either.
    let batch = json!([request(8, "tasks/get", &json!({"taskId": "t-0"}))]);
    let batch = all.users.as_user("bob", Request::post(&batch));
    assert_eq!(all.guarded.send(batch).await.status, 400);
    assert!(all.guarded.server.seen().is_empty());
}

#[tokio::test]
async fn rule_27_holds_on_the_older_transport_and_between_the_two() {
    let users = Users::new().await;
    let streams = Streams::default();
    let (on_sse, said) = (on_sse(&streams), streams.clone());
    let guarded = Guarded::of(Dialect::Sse, users.steps(), move |seen| {
        let message = seen.json();
        if message["method"] != "tools/call" {
            return on_sse(seen);
        }
        let result = json!({"task": {"taskId": "t-0", "status": "working"}});
        say(said.lock().unwrap()[0].as_ref().unwrap(), &json!({"jsonrpc": "2.0", "id": 1, "result": result}));
        reply(202, &[], "")
    })
    .await;
    let open = Request::new("GET", "/sse").header("Accept", "text/event-stream");
    let mut stream = guarded.send(users.as_user("ann", open)).await;
    assert!(stream.event().await.unwrap().contains("sessionId=0"));
    let post = async |name: &str, params: &Value| {
        let post = Request::new("POST", "/messages?sessionId=0").header("Content-Type", "application/json");
        let post = post.body(request(1, name, params).to_string());
        guarded.send(users.as_user("ann", post)).await
    };
    assert_eq!(post("tools/call", &json!({"name": "a", "task": {}})).await.status, 202);
    let id = stream.message().await.unwrap()["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    assert!(id.ends_with(".t-0") && id != "t-0", "{id}");
    guarded.server.seen();
    assert_eq!(post("tasks/get", &json!({"taskId": id})).await.status, 202);
    assert_eq!(guarded.server.seen()[0].json()["params"]["taskId"], "t-0");
    assert_eq!(post("tasks/get", &json!({"taskId": "t-0"})).await.json().await["error"]["code"], -32602);
    // A client of the other transport has none.
    let all = InSessions { users, guarded };
    let bob = all.begin("bob").await;
    all.guarded.server.seen();
    let refused = all.ask("bob", &bob, "tasks/get", &json!({"taskId": "t-0"})).await;
    assert_eq!(refused["error"]["code"], -32601);
    assert!(all.guarded.server.seen().is_empty());
}
