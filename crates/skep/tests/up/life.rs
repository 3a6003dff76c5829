//! The machine as a whole: it goes on where it was, and leaves nothing behind, however it ends.

use serde_json::{Value, json};

use super::machine::{Machine, eventually, marked};

async fn start_marked(machine: &Machine, mark: &str) {
    // A daemon that has left its group and its session, beside the program itself.
    let script = format!("setsid sh -c 'echo {mark}; sleep 1000' & exec sh -c 'echo {mark}; sleep 1000'");
    machine
        .pod(
            "long",
            json!({"containers": [{"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent",
            "args": [script], "env": [{"name": "MARK", "value": mark}]}]}),
        )
        .await;
    let running = |status: &Value| status["containerStatuses"][0]["ready"] == true;
    machine.until("long", "runs", running).await;
    eventually("its processes are there", || async {
        let found = marked(mark);
        if found.len() >= 2 { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

async fn nothing_is_left(mark: &str) {
    eventually("nothing is left", || async {
        let found = marked(mark);
        if found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stops_in_an_orderly_way() {
    let Some(machine) = Machine::start_or_skip("it_stops_in_an_orderly_way").await else { return };
    let mark = format!("skep-test-orderly-{}", machine.process());
    start_marked(&machine, &mark).await;
    machine.signal("-TERM");
    let (code, _folder) = machine.ended().await;
    assert_eq!(code, Some(0));
    nothing_is_left(&mark).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_machine_goes_on_where_it_was() {
    let Some(mut machine) = Machine::start_or_skip("a_killed_machine_goes_on_where_it_was").await else { return };
    let rounds = if std::env::var_os("SKEP_SOAK").is_some() { 50 } else { 2 };
    for round in 0..rounds {
        let mark = format!("skep-test-killed-{}-{round}", machine.process());
        machine.config(&format!("round-{round}"), json!({"k": "v"})).await;
        if round == 0 {
            start_marked(&machine, &mark).await;
        }
        machine.signal("-KILL");
        let (_, folder) = machine.ended().await;
        nothing_is_left(&mark).await;
        machine = Machine::start(folder).await;
        let again = |status: &Value| {
            let container = &status["containerStatuses"][0];
            container["ready"] == true && container["restartCount"].as_i64() > Some(round)
        };
        machine.until("long", "runs again", again).await;
        for earlier in 0..=round {
            let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
                kube::Api::default_namespaced(machine.client.clone());
            maps.get(&format!("round-{earlier}")).await.unwrap();
        }
    }
}
