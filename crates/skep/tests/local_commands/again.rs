//! A second start continues where the first left off: nothing comes back, nothing is written over, nothing is half there.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::here::{Here, LIMIT, echo};
use skep_conformance::ports::free_port;

fn demo() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/echo.yaml");
    path.to_str().unwrap().to_owned()
}

fn config(name: &str, value: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}})
}

#[test]
fn a_new_folder_gets_a_demo_which_stays_deleted() {
    let here = Here::new();
    let table = here.up(&[]);
    assert!(table.contains("echo") && table.contains("/mcp"), "{table}");
    let rows = here.status_when("the demo tells its tools", |rows| rows.len() == 1 && rows[0]["tools"].is_array());
    let url = rows[0]["localUrl"].clone();
    here.done(&["down"]);
    here.up(&[]);
    let rows = here.status_when("the demo is back", |rows| rows.len() == 1 && rows[0]["tools"].is_array());
    assert_eq!(rows[0]["localUrl"], url);
    here.done(&["delete", "-f", &demo()]);
    here.done(&["down"]);
    assert_eq!(here.up(&[]), "", "what was deleted stays deleted");
    assert_eq!(here.status(), Vec::<Value>::new());
}

// Its containers are found ended, which is no failure of this life.
#[test]
fn a_start_after_a_kill_waits_for_what_is_started_again() {
    let here = Here::new();
    let said = here.run(&["up", "--detach", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let process = said.stderr.split("as process ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    assert!(Command::new("kill").args(["-KILL", process]).status().unwrap().success());
    let table = here.up(&[]);
    assert!(table.contains("Ready") && !table.contains("Failed"), "{table}");
}

#[test]
fn a_plain_start_leaves_the_objects_of_others_alone() {
    let here = Here::new();
    let port = free_port().unwrap();
    // By the names of the demo.
    here.up(&["-f", &here.manifest("own.json", &echo("echo", port))]);
    let spec = |kind: &str| -> Value {
        let object: Value = serde_json::from_str(&here.done(&["get", kind, "echo", "-o", "json"])).unwrap();
        object["spec"].clone()
    };
    let before = (spec("deployment"), spec("service"));
    here.done(&["down"]);
    here.up(&[]);
    assert_eq!((spec("deployment"), spec("service")), before);
    let rows = here.status();
    let url = format!("http://127.0.0.1:{port}");
    assert!(rows.len() == 1 && rows[0]["localUrl"].as_str().unwrap().starts_with(&url), "{rows:#?}");
}

#[test]
fn manifests_are_applied_all_or_none() {
    let here = Here::new();
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hive"}});
    let mut inside = config("inside", &json!("b"));
    inside["metadata"]["namespace"] = json!("hive");
    let bad = here
        .manifest("bad.json", &[space.clone(), inside.clone(), config("good", &json!("b")), config("bad", &json!(1))]);
    let said = here.run(&["up", "--listen", "127.0.0.1:0", "-f", &bad]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains(&format!("error: cannot apply {bad}, document 1\n")), "{said:?}");
    let good = here.manifest("good.json", &[space, inside]);
    here.up(&["-f", &good]);
    assert_eq!(here.done(&["get", "cm", "-n", "hive", "inside", "-o", "name"]), "configmap/inside\n");
    assert_eq!(here.run(&["get", "cm", "good"]).code, Some(1), "nothing of the first start is there");
}

#[test]
fn what_was_served_before_is_not_served_yet() {
    let here = Here::new();
    let map = here.folder.path().join("images.yaml");
    let write = |image: &str| {
        let program = snapbox::cmd::cargo_bin!("skep").display().to_string();
        let paths = Path::new(&program).parent().unwrap().display().to_string();
        let entry = json!({"image": image, "command": [program, "demo", "echo"], "paths": [paths]});
        std::fs::write(&map, json!({"images": [entry]}).to_string()).unwrap();
    };
    let [mut deployment, service] = echo("plain", free_port().unwrap());
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("mapped");
    let server = json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "metadata": {"name": "proxied"},
        "spec": {"image": "mapped", "transport": "stdio", "proxyPort": free_port().unwrap()}});
    let manifest = here.manifest("both.json", &[deployment, service, server]);
    let map_argument = map.to_str().unwrap();
    // A machine that is killed cannot say that its pods have ended.
    for stop in [&["down"][..], &["down", "--timeout", "0", "--force"]] {
        write("mapped");
        here.up(&["--image-map", map_argument, "-f", &manifest]);
        here.done(stop);
        // What was served cannot be any more: whoever says so knows it from before.
        write("other");
        let log = here.folder.path().join("said");
        let mut command = here.command(&["up", "--listen", "127.0.0.1:0"]);
        let mut child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
        let begun = Instant::now();
        let said = loop {
            let said = std::fs::read_to_string(&log).unwrap();
            if ["failed   default/plain", "failed   default/proxied"].iter().all(|line| said.contains(line)) {
                break said;
            }
            assert!(begun.elapsed() < LIMIT, "{said}");
            std::thread::sleep(Duration::from_millis(50));
        };
        here.done(&["down"]);
        child.wait().unwrap();
        assert!(!said.contains("ready    "), "after {stop:?}: {said}");
    }
}

#[test]
fn an_image_map_is_remembered() {
    let here = Here::new();
    let map = here.folder.path().join("images.yaml");
    std::fs::write(&map, "images:\n- image: shell\n  command: [/bin/sh, -c]\n").unwrap();
    let [mut deployment, service] = echo("mapped", free_port().unwrap());
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["image"] = json!("shell");
    container["args"] = json!(["exec sleep 1000"]);
    container.as_object_mut().unwrap().remove("readinessProbe");
    let manifest = here.manifest("mapped.json", &[deployment, service]);
    here.up(&["--image-map", map.to_str().unwrap(), "-f", &manifest]);
    here.done(&["down"]);
    here.up(&[]);
    here.status_when("it runs again", |rows| rows.len() == 1 && rows[0]["ready"] == true);
    here.done(&["down"]);
    std::fs::remove_file(&map).unwrap();
    let said = here.run(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains(map.to_str().unwrap()), "{said:?}");
}
