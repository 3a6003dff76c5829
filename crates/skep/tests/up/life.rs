//! The machine as a whole: what it keeps to itself, and an orderly end.

use serde_json::{Value, json};
use skep_conformance::processes::{inner, marked};
use tempfile::TempDir;

use super::machine::{Machine, eventually};
use super::start::Start;

pub(crate) async fn start_marked(machine: &Machine, mark: &str) {
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

pub(crate) async fn nothing_is_left(mark: &str) {
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
async fn an_ordinary_user_can_run_it() {
    let test = "an_ordinary_user_can_run_it";
    let Some(start) = Start::new().by_nobody() else {
        return skep_conformance::skip::skip(test, "only an administrator who has setpriv can become somebody else");
    };
    let Some(machine) = start.or_skip(test).await else { return };
    let script = "echo I am $(id -u); sleep 1000";
    let container = json!({"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent", "args": [script]});
    machine.pod("own", json!({"containers": [container]})).await;
    machine.until_printed("own", "I am ").await;
    let status = machine.until("own", "runs", |status| status["phase"] == "Running").await;
    assert!(status["podIP"].as_str().unwrap().starts_with("10.244."), "{status:#}");
    machine.signal("-TERM");
    assert_eq!(machine.ended().await.0, Some(0));
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
async fn a_request_that_comes_twice_at_once_is_one() {
    let Some(machine) = Machine::start_or_skip("a_request_that_comes_twice_at_once_is_one").await else { return };
    let script = "trap 'sleep 1; echo done > /flag/done; exit 0' TERM; echo up; while true; do sleep 0.05; done";
    let flag = machine.folder.path().join("flag");
    std::fs::create_dir(&flag).unwrap();
    let container = json!({"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent", "args": [script],
        "volumeMounts": [{"name": "flag", "mountPath": "/flag"}]});
    let volumes = json!([{"name": "flag", "hostPath": {"path": flag}}]);
    machine.pod("polite", json!({"containers": [container], "volumes": volumes})).await;
    machine.until_printed("polite", "up").await;
    // As a terminal and `timeout` do together.
    let both = format!("kill -INT {0}; kill -TERM {0}", machine.process());
    assert!(std::process::Command::new("sh").args(["-c", &both]).status().unwrap().success());
    let (code, folder) = machine.ended().await;
    assert_eq!(code, Some(0));
    let said = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(folder.path().join("flag/done").exists() && !said.contains("stopped at once"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_inside_is_told() {
    let Some(machine) = Machine::start_or_skip("a_kill_inside_is_told").await else { return };
    let inside = inner(machine.process()).unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &inside]).status().unwrap().success());
    let (code, folder) = machine.ended().await;
    let said = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(code, Some(137), "{said}");
    assert!(said.contains("error: the process inside of the namespaces was killed by signal 9"), "{said}");
    assert!(said.contains("hint: nothing that was applied is lost"), "{said}");
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
