//! Traces and metrics from end to end, and the example that counts.

use super::collected::{self, KEY};
use super::http::Request;
use super::machine::{LIMIT, Machine};
use super::mcp::until_served;
use super::prometheus::Prometheus;
use super::readers::{Reader, sample};
use super::servers::adds;
use skep_conformance::ports::free_port;

const EXAMPLE: &str = include_str!("../../../../examples/telemetry.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_and_prometheus_get_what_happens() {
    let test = "a_collector_and_prometheus_get_what_happens";
    let (Some(reader), Some(prometheus)) = (Reader::get(test), Prometheus::get(test)) else { return };
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    let port = free_port().unwrap();
    machine.apply(&EXAMPLE.replace("8082", &port.to_string())).await;
    collected::check(&machine.place(), &reader, &prometheus).await;
    let example = format!("127.0.0.1:{port}");
    until_served(LIMIT, &example, || machine.said()).await;
    assert!(adds(&example));
    let page = reader.page(&Request::new("GET", "/metrics").send(&example).text());
    assert!(
        sample(&page, "toolhive_mcp_tool_calls_total", &[("server", "counted"), ("tool", "add")]).as_u64().unwrap()
            >= 1
    );
    assert!(!machine.said().contains(KEY), "the key is told to nobody else");
}
