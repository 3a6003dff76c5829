//! The public conformance suite through proxies that the operator has deployed.

use serde_json::json;

use super::machine::{LIMIT, Machine};
use super::mcp::until_served;
use super::npm::Packages;
use super::servers::serve;
use super::suite::{SHARED_PROCESS, check};

/// What the suite finds in a bridge that is in a pod, besides what it finds in the bridge.
const IN_A_POD: &str = include_str!("../suite/pod_expected_failures.txt");

#[tokio::test(flavor = "multi_thread")]
async fn the_public_suite_does_not_notice_the_proxies_of_the_operator() {
    let test = "the_public_suite_does_not_notice_the_proxies_of_the_operator";
    let Some(packages) = Packages::get(test) else { return };
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    let streamable = serve(&machine, "streamable", json!({"transport": "streamable-http"})).await;
    let lines = serve(&machine, "lines", json!({"transport": "stdio"})).await;
    for address in [&streamable, &lines] {
        until_served(LIMIT, address, || machine.said()).await;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| check(&packages, "the operator's proxy", &streamable, &[]));
        scope.spawn(|| check(&packages, "the operator's bridge", &lines, &[SHARED_PROCESS, IN_A_POD]));
    });
}
