//! Clients that listen by a request, and how often they may.

use serde_json::{Value, json};

use super::server::{Server, Setup};
use crate::http::{PATIENCE, Request, Response, modern};

fn request(token: &str) -> Request {
    modern("l", "subscriptions/listen", json!({"notifications": {}})).header("Authorization", token)
}

/// Opens a stream.
async fn listen(setup: &Setup, server: &mut Server, token: &str) -> Response {
    let (mut stream, ()) = tokio::join!(setup.send(request(token)), async {
        let asked = server.expect("subscriptions/listen").await;
        let tag = json!({"io.modelcontextprotocol/subscriptionId": asked["id"]});
        let params = json!({"notifications": {}, "_meta": tag});
        let told = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
        server.write(&told).await;
    });
    let told: Value = stream.message().await.unwrap();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    stream
}

#[tokio::test]
async fn rule_25_a_client_has_some_streams_of_changes_and_no_more() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    setup.speak_modern(&mut server).await;
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(listen(&setup, &mut server, "Bearer a").await);
    }
    let mut refused = setup.send(request("Bearer a")).await;
    assert_eq!(refused.status, 429);
    let refused = refused.json().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("l"), &json!(-32603)));
    let told = "this client may have 8 streams of subscriptions/listen open, and no more; close one";
    assert_eq!(refused["error"]["message"], told);
    // It is nobody else's affair, and the process heard nothing of it.
    let _other = listen(&setup, &mut server, "Bearer b").await;
    open.pop();
    server.expect("notifications/cancelled").await;
    let again = async {
        loop {
            let (answer, asked) = tokio::join!(setup.send(request("Bearer a")), async {
                tokio::time::timeout(std::time::Duration::from_millis(100), server.next()).await.ok()
            });
            if answer.status == 200 {
                break asked;
            }
            assert_eq!(answer.status, 429);
        }
    };
    let asked = tokio::time::timeout(PATIENCE, again).await.unwrap();
    assert_eq!(asked.flatten().unwrap()["method"], "subscriptions/listen");
}
