//! Where a server of somebody else must not be, however its address is written.

use serde_json::json;
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy};

use super::server::{Before, Server, with_sessions};
use crate::http::{Request, initialize, modern};
use crate::inside::{BARRED_ADDRESSES, BARRED_FORMS, OWN_ADDRESSES, OWN_FORMS};

async fn before(target: Target) -> Before {
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let before = Before::unready(Proxy::transparent(transparent)).await;
    before.await_ready().await;
    before
}

/// Checks that clients of every era are told that the server cannot be reached, and nothing about where it is.
async fn check_refused(host: &str, before: &Before) {
    for request in [Request::post(&initialize("2025-11-25")), modern(1, "tools/list", json!({}))] {
        let mut refused = before.send(request).await;
        let said = refused.text().await;
        assert_eq!((refused.status, refused.header("content-type"), &*said), (502, None, ""), "{host}");
    }
}

#[tokio::test]
async fn a_server_of_somebody_else_is_not_on_this_machine_unless_that_is_allowed() {
    let server = Server::start(with_sessions("a")).await;
    let port = server.address.rsplit(':').next().unwrap();
    for host in [OWN_ADDRESSES, OWN_FORMS, BARRED_ADDRESSES, BARRED_FORMS].concat() {
        let target = Target::remote(Dialect::Streamable, &format!("http://{host}:{port}/mcp")).unwrap();
        check_refused(host, &before(target).await).await;
    }
    assert!(server.seen().is_empty());
    for host in ["127.0.0.1", "localhost"] {
        let target = Target::remote(Dialect::Streamable, &format!("http://{host}:{port}/mcp")).unwrap();
        let answer = before(target.allowing_private()).await.send(Request::post(&initialize("2025-11-25"))).await;
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[tokio::test]
async fn where_clouds_answer_machines_about_themselves_no_server_is() {
    for host in [BARRED_ADDRESSES, BARRED_FORMS].concat() {
        let target = Target::remote(Dialect::Streamable, &format!("http://{host}/mcp")).unwrap().allowing_private();
        check_refused(host, &before(target).await).await;
    }
}
