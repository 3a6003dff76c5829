//! Chains that tell, and that others take the place of.

use std::time::Duration;

use skep_proxy::middleware::{Authentication, Chain, Step, Telemetry, TelemetrySettings};
use skep_proxy::transparent::Dialect;

use super::{collector, settings, taking, told, tools};
use crate::http::{Request, call};
use crate::transparent::server::{Before, Server};

#[tokio::test]
async fn the_collector_of_a_chain_that_was_replaced_is_told_before_the_proxy_ends() {
    let (server, taking) = (Server::start(tools).await, taking().await);
    let (mut before, middleware) = Before::chained(&server, Dialect::Streamable).await;
    let settings = TelemetrySettings { collector: Some(collector(&taking.address)), ..settings() };
    let telemetry = Step::Telemetry(Telemetry::new(settings).unwrap());
    middleware.replace(Chain::new(vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, telemetry]));
    assert_eq!(before.send(Request::post(&call(1, "feed"))).await.status, 200);
    let held = taking.hold();
    middleware.replace(Chain::new(Vec::new()));
    {
        let stopping = before.stop();
        tokio::pin!(stopping);
        tokio::select! {
            () = &mut stopping => panic!("the proxy has ended, and nobody has heard the rest"),
            () = tokio::time::sleep(Duration::from_millis(500)) => drop(held),
        }
        stopping.await;
    }
    let seen = taking.seen();
    assert!(!told(&seen, "traces").is_empty() && !told(&seen, "metrics").is_empty(), "{seen:?}");
}
