//! The race of a rolling update, on a machine.

use skep_conformance::race::{self, Place, servers};

use super::machine::Machine;

#[tokio::test(flavor = "multi_thread")]
async fn generation_race() {
    let Some(machine) = Machine::start_or_skip("generation_race").await else { return };
    let place =
        Place { server: "https://kubernetes.default.svc".to_owned(), host_network: false, image: "shell".to_owned() };
    println!("figure: {} on skep up", race::run(machine.client.clone(), place).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn generation_race_of_mcp_servers() {
    let Some(machine) = Machine::start_or_skip("generation_race_of_mcp_servers").await else { return };
    machine.until_installed().await;
    println!("figure: {} on skep up", servers::run(machine.client.clone()).await.unwrap());
}
