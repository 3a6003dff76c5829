//! The machine as a whole: what it keeps to itself, and an orderly end.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::machine::{Machine, eventually, marked};
use super::start::Start;

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
async fn pods_do_not_see_its_data() {
    let test = "pods_do_not_see_its_data";
    // Temporary folders are hidden from pods anyway, and so is the home folder.
    let made = ["/opt", "/srv", "/mnt", "/usr/local"].into_iter().find_map(|place| TempDir::new_in(place).ok());
    let Some(folder) = made else {
        return skep_conformance::skip::skip(test, "there is no place for data that pods see");
    };
    let Some(machine) = Start::on(folder).or_skip(test).await else { return };
    let data = machine.folder.path().join("data").display().to_string();
    let script = format!("ls {data}/..; cat {data}/kubeconfig {data}/pki/*; ls {data}; echo end; sleep 1000");
    let container = json!({"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent", "args": [script]});
    machine.pod("peeks", json!({"containers": [container]})).await;
    machine.until_printed("peeks", "end").await;
    let seen = machine.printed("peeks").await;
    assert!(seen.contains("images.yaml"), "what is beside it is seen: {seen}");
    assert!(!seen.contains("BEGIN") && !seen.contains("apiVersion") && !seen.contains("\nkubeconfig"), "{seen}");
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
async fn it_ends_with_its_terminal() {
    let Some(machine) = Machine::start_or_skip("it_ends_with_its_terminal").await else { return };
    machine.pod("waits", json!({"containers": [{"name": "main", "image": "shell", "args": ["sleep 1000"]}]})).await;
    machine.until("waits", "runs", |status| status["phase"] == "Running").await;
    // A shell tells its jobs, and the terminal those that it shows.
    machine.signal("-HUP");
    machine.signal("-HUP");
    let (code, folder) = machine.ended().await;
    assert_eq!(code, Some(0));
    let said = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(said.contains("stopping: ") && !said.contains("stopped at once"), "{said}");
}
