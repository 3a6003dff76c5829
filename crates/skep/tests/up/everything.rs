//! The layers of proxies and their credentials from end to end, with `skep up`.

use super::machine::Machine;
use super::{layers, outgoing};

#[tokio::test(flavor = "multi_thread")]
async fn manifests_say_what_clients_of_proxies_meet() {
    let test = "manifests_say_what_clients_of_proxies_meet";
    let Some(needs) = layers::Needs::get(test) else { return };
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    layers::check(&machine.place(), &needs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_shown_credentials_of_its_own() {
    let Some(machine) = Machine::start_or_skip("a_server_is_shown_credentials_of_its_own").await else { return };
    machine.until_installed().await;
    outgoing::check(&machine.place()).await;
}
