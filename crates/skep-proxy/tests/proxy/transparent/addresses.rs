//! Where a server of somebody else must not be, however its address is written.

use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy};

use super::server::{Before, Server, with_sessions};
use crate::http::{Request, initialize};

async fn before(target: Target) -> Before {
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let before = Before::unready(Proxy::transparent(transparent)).await;
    before.await_ready().await;
    before
}

#[tokio::test]
async fn a_server_of_somebody_else_is_not_on_this_machine_unless_that_is_allowed() {
    let server = Server::start(with_sessions("a")).await;
    let port = server.address.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"] {
        let target = Target::remote(Dialect::Streamable, &format!("http://{host}:{port}/mcp")).unwrap();
        let refused = before(target).await.send(Request::post(&initialize("2025-11-25"))).await;
        assert_eq!(refused.status, 502, "{host}");
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
    for host in ["169.254.169.254", "2852039166", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "100.100.100.200", "0.0.0.0"]
    {
        let target = Target::remote(Dialect::Streamable, &format!("http://{host}/mcp")).unwrap().allowing_private();
        let refused = before(target).await.send(Request::post(&initialize("2025-11-25"))).await;
        assert_eq!(refused.status, 502, "{host}");
    }
}
