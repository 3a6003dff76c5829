//! Starting, looking, stopping; and what is said when that cannot be done.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use super::here::{Here, Said, echo};
use skep_conformance::ports::free_port;

/// An ordinary user that every machine has.
const NOBODY: u32 = 65534;

#[test]
fn nothing_runs() {
    let here = Here::new();
    for arguments in [&["status"][..], &["get", "pods"], &["logs", "echo"], &["delete", "pod", "a"]] {
        let said = here.run(arguments);
        assert_eq!((said.code, said.stdout.as_str()), (Some(3), ""), "{said:?}");
        let expected = format!(
            "error: nothing runs on {0}\n\
             hint: start it with skep up --data-dir {0}, or name the folder of what runs with --data-dir\n",
            here.data().display()
        );
        assert_eq!(said.stderr, expected);
    }
    let said = here.run(&["down"]);
    assert_eq!((said.code, said.stderr.starts_with("nothing runs on ")), (Some(0), true), "{said:?}");
    assert!(!here.data().exists(), "looking has made the folder");
}

#[test]
fn it_runs_in_the_background_until_it_is_stopped() {
    let here = Here::new();
    let port = free_port().unwrap();
    let manifest = here.manifest("echo.json", &echo("echo", port));
    let table = here.up(&["-f", &manifest]);
    let url = format!("http://127.0.0.1:{port}/mcp");
    // A server that has not answered yet has told no path.
    assert!(table.starts_with("NAMESPACE") && table.contains(url.trim_end_matches("/mcp")), "{table}");
    let log = fs::read_to_string(here.data().join("log")).unwrap();
    assert!(log.contains("export KUBECONFIG="), "{log}");

    let status = here.status_when("it tells its tools", |rows| rows.len() == 1 && rows[0]["tools"].is_array());
    let row = &status[0];
    let tools = row["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("echo")), "{row:#}");
    let mut brief = row.clone();
    brief["tools"] = json!(null);
    let expected = json!({"kind": "Deployment", "namespace": "default", "name": "echo", "transport": "streamable-http",
        "phase": "Ready", "ready": true, "url": format!("http://echo.default.svc.cluster.local:{port}/mcp"),
        "localUrl": url, "tools": null, "message": null});
    assert_eq!(brief, expected);
    let client: Value = serde_json::from_str(&here.done(&["status", "-o", "client"])).unwrap();
    assert_eq!(client, json!({"mcpServers": {"echo": {"type": "http", "url": url}}}));
    let wide = here.done(&["status", "-o", "wide"]);
    assert!(wide.contains("streamable-http") && wide.contains("echo.default.svc.cluster.local"), "{wide}");

    // A second one says who is there, in the foreground and in the background, and changes nothing.
    for arguments in [&["up", "--listen", "127.0.0.1:0"][..], &["up", "--detach", "--listen", "127.0.0.1:0"]] {
        let said = here.run(arguments);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.starts_with("error: skep up runs on ") && said.stderr.contains("(process "), "{said:?}");
        assert!(said.stderr.contains(&format!("skep down --data-dir {} stops it", here.data().display())), "{said:?}");
    }
    assert_eq!(here.status()[0]["localUrl"], json!(url));

    let said = here.run(&["down"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.starts_with("stopped: process "), "{said:?}");
    assert_eq!(here.run(&["status"]).code, Some(3));

    // It goes on where it was, at the same place.
    here.up(&["--no-demo"]);
    let status = here.status_when("it is back", |rows| rows.len() == 1 && rows[0]["tools"].is_array());
    assert_eq!(status[0]["localUrl"], json!(url));
    assert!(here.data().join("log.previous").exists());
}

#[test]
fn a_port_in_use_is_told_and_nothing_is_started() {
    let here = Here::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for mode in ["--no-demo", "--detach"] {
        let said = here.run(&["up", mode, "--listen", &address.to_string()]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        let expected = format!(
            "error: port {0} of 127.0.0.1 is in use by another program\n\
             hint: end the program that listens on port {0}, perhaps another skep up\n\
             hint: or choose another address with --listen 127.0.0.1:PORT\n",
            address.port()
        );
        assert_eq!(said.stderr, expected);
        assert_eq!(here.run(&["status"]).code, Some(3));
    }
}

#[test]
fn a_package_that_cannot_be_installed_is_told_before_anything_is_started() {
    let here = Here::new();
    let [mut deployment, service] = echo("everything", free_port().unwrap());
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("npx://server-everything");
    let manifest = here.manifest("npx.json", &[deployment, service]);
    let nothing = here.folder.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    let mut command = here.command(&["up", "--listen", "127.0.0.1:0", "-f", &manifest]);
    let said = Said::new(command.env("PATH", &nothing).output());
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    let expected = format!(
        "error: {manifest}, document 1: the image npx://server-everything cannot be had: npm is not installed on this \
         machine: install Node.js, which brings it\n"
    );
    assert!(said.stderr.starts_with(&expected), "{said:?}");
    assert!(said.stderr.contains("hint: skep doctor shows what this machine has\n"), "{said:?}");
    assert!(!here.data().join("store").exists(), "the API server was started");
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let here = Here::new();
    fs::write(here.data(), "a file").unwrap();
    let said = here.run(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.starts_with("error: cannot make the data folder "), "{said:?}");
    assert!(said.stderr.contains("hint: name a folder that you may write to with --data-dir\n"), "{said:?}");
}

/// Only root can be somebody else; others are shut out of their own folder.
#[test]
fn the_folder_of_another_user_is_told() {
    let here = Here::new();
    let own = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    own(here.folder.path(), 0o755);
    fs::create_dir(here.data()).unwrap();
    let kubeconfig = here.data().join("kubeconfig");
    fs::write(&kubeconfig, "secret").unwrap();
    own(&kubeconfig, 0);
    // Others may not come where the program was built.
    let program = here.folder.path().join("skep");
    fs::copy(cargo_bin!("skep"), &program).unwrap();
    for (mode, command) in [(0o711, "status"), (0, "status"), (0o711, "apply")] {
        own(&here.data(), mode);
        let mut other = Command::new(&program);
        other.arg(command).args(["-f", "-"].iter().filter(|_| command == "apply"));
        if rustix::process::geteuid().is_root() {
            other.uid(NOBODY).gid(NOBODY);
        }
        let other = other.arg("--data-dir").arg(here.data()).current_dir("/").stdin(Stdio::piped());
        let mut child = other.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        // Only one of them reads it.
        let _ = child.stdin.take().unwrap().write_all(map.to_string().as_bytes());
        let said = Said::new(child.wait_with_output());
        let expected = format!("error: cannot look into {}: Permission denied", here.data().display());
        assert!(said.code == Some(1) && said.stderr.starts_with(&expected), "{mode:o} {said:?}");
        assert!(said.stderr.contains("hint: it belongs to another user: name a folder of your own"), "{said:?}");
    }
    own(&here.data(), 0o711);
}

#[test]
fn manifests_come_from_standard_input() {
    let here = Here::new();
    let mut command = here.command(&["up", "--detach", "--listen", "127.0.0.1:0", "-f", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "piped"}, "data": {"a": "b"}});
    child.stdin.take().unwrap().write_all(map.to_string().as_bytes()).unwrap();
    let said = Said::new(child.wait_with_output());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(here.done(&["get", "cm", "piped", "-o", "name"]), "configmap/piped\n");
    let said = here.run(&["status"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "{said:?}");
}

#[test]
fn what_cannot_be_served_is_a_failure() {
    let here = Here::new();
    let [mut deployment, service] = echo("broken", free_port().unwrap());
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("no-such-image");
    let manifest = here.manifest("broken.json", &[deployment, service]);
    let said = here.run(&["up", "--detach", "--listen", "127.0.0.1:0", "-f", &manifest]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains("Failed"), "{said:?}");
    assert!(
        said.stderr.contains("error: not served: default/broken (") && said.stderr.contains("\nhint: "),
        "{said:?}"
    );
    assert_eq!(here.run(&["status"]).code, Some(0), "it goes on trying");
}

#[test]
fn a_server_whose_image_cannot_be_had_is_a_failure_until_it_is_mended() {
    let here = Here::new();
    let port = free_port().unwrap();
    let server = |image: &str| {
        json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": "broken"},
            "spec": {"image": image, "transport": "stdio", "proxyPort": port}})
    };
    let manifest = here.manifest("broken.json", &[server("registry.example/nope")]);
    let said = here.run(&["up", "--detach", "--listen", "127.0.0.1:0", "-f", &manifest]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("error: not served: default/broken (") && !said.stderr.contains("For MCP clients"));
    let rows = here.status_when("the cause is told", |rows| rows.len() == 1 && rows[0]["phase"] == "Failed");
    let told = rows[0]["message"].as_str().unwrap();
    assert!(rows[0]["ready"] == false && told.contains("map it to a command in the image map"), "{rows:#?}");
    let client: Value = serde_json::from_str(&here.done(&["status", "-o", "client"])).unwrap();
    assert_eq!(client, json!({"mcpServers": {}}), "nobody could use it");

    let manifest = here.manifest("mended.json", &[server("skep-demo/echo")]);
    here.done(&["apply", "-f", &manifest]);
    here.status_when("it is mended", |rows| rows.len() == 1 && rows[0]["ready"] == true && rows[0]["tools"].is_array());
}

#[test]
fn a_pod_that_does_not_want_to_end_does_not_keep_it() {
    let here = Here::new();
    let map = here.folder.path().join("images.yaml");
    fs::write(&map, "images:\n- image: shell\n  command: [/bin/sh, -c]\n").unwrap();
    let script = "trap '' TERM; while true; do sleep 0.1; done";
    let deaf = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "deaf"},
        "spec": {"terminationGracePeriodSeconds": 600,
            "containers": [{"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent", "args": [script]}]}});
    here.up(&["--no-demo", "--image-map", map.to_str().unwrap(), "--pod-range", "10.77.0.0/16"]);
    let manifest = here.manifest("deaf.json", &[deaf]);
    here.until_done(&["apply", "-f", &manifest]);
    here.until_printed("it runs", &["get", "pods", "-o", "wide"], |text| {
        text.contains("Running") && text.contains(" 10.77.")
    });
    here.done(&["delete", "pod", "deaf", "--no-wait"]);
    let said = here.run(&["down", "--timeout", "100"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn what_does_not_stop_can_be_killed() {
    let here = Here::new();
    here.up(&["--no-demo"]);
    let process = here.run(&["up", "--listen", "127.0.0.1:0"]).stderr;
    let process: u32 = process.split("(process ").nth(1).unwrap().split(')').next().unwrap().parse().unwrap();
    let signal = |name: &str| std::process::Command::new("kill").args([name, &process.to_string()]).status().unwrap();
    assert!(signal("-STOP").success());
    let said = here.run(&["down", "--timeout", "0"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("has not stopped in 0 s\nhint: wait longer with --timeout, or kill it"), "{said:?}");
    let said = here.run(&["down", "--timeout", "0", "--force"]);
    assert_eq!((said.code, said.stderr), (Some(0), format!("killed: process {process}\n")));
    // What it has left behind is in nobody's way.
    here.up(&["--no-demo"]);
}
