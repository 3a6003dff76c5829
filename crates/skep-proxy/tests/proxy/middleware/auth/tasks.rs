//! A task belongs to whoever began it. To anybody else it is not there, even when they know its id.

use serde_json::{Value, json};

use super::sessions::Users;
use crate::eras::stands_alone;
use crate::http::{Request, modern};
use crate::middleware::Guarded;
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
