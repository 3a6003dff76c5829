//! What becomes of pods. One machine serves all scenarios, which run side by side.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};

use super::machine::{Machine, eventually};
use skep_conformance::ports::free_port;

fn shell(script: &str) -> Value {
    json!([{"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent", "args": [script]}])
}

fn waiting(status: &Value, reason: &str) -> bool {
    status["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
}

fn is_ready(status: &Value) -> bool {
    status["containerStatuses"].as_array().is_some_and(|all| all.iter().all(|one| one["ready"] == true))
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_run_as_they_would_in_a_cluster() {
    let Some(machine) = Machine::start_or_skip("pods_run_as_they_would_in_a_cluster").await else { return };
    let machine = Arc::new(machine);
    let mut scenarios = tokio::task::JoinSet::new();
    macro_rules! run {
        ($($scenario:ident),+) => {$({
            let machine = machine.clone();
            scenarios.spawn(async move {
                $scenario(&machine).await;
                eprintln!("passed: {}", stringify!($scenario));
            });
        })+};
    }
    run!(
        a_pod_knows_itself,
        volumes_follow_their_source,
        a_bad_image_is_told_and_can_be_mended,
        a_deployment_is_mended_without_touching_its_neighbour,
        a_program_that_is_not_there_is_told,
        a_missing_reference_is_told_and_waited_for,
        containers_run_in_order,
        crashes_are_counted,
        services_lead_to_ready_pods,
        a_pod_reaches_the_api_server,
        a_deletion_of_one_object_does_not_mind_its_changes,
        deletion_is_graceful
    );
    let mut failed = Vec::new();
    while let Some(outcome) = scenarios.join_next().await {
        failed.extend(outcome.err().map(|error| error.to_string()));
    }
    assert!(failed.is_empty(), "{} scenarios failed:\n{}", failed.len(), failed.join("\n"));
}

async fn a_pod_knows_itself(machine: &Machine) {
    let mut containers = shell("echo name=$NAME colour=$COLOUR say=$SAY host=$(hostname) home=$HOME; sleep 1000");
    containers[0]["env"] = json!([
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "COLOUR", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['colour']"}}},
        {"name": "SAY", "value": "$(NAME)-$(COLOUR)"}]);
    machine.pod("self", json!({"containers": containers})).await;
    machine.until_printed("self", "name=self colour=red say=self-red host=self home=/tmp").await;
    let status = machine.until("self", "is ready", is_ready).await;
    assert!(status["podIP"].as_str().unwrap().starts_with("10.244."), "{status:#}");
    assert_eq!(status["phase"], "Running");
}

async fn volumes_follow_their_source(machine: &Machine) {
    machine.config("settings", json!({"colour": "red"})).await;
    let secrets: Api<Secret> = Api::default_namespaced(machine.client.clone());
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"key": "s3"}});
    secrets.patch("keys", &PatchParams::apply("test"), &Patch::Apply(&secret)).await.unwrap();
    let script = "while true; do echo live=$(cat /etc/settings/colour) once=$(cat /opt/colour) \
        key=$(cat /keys/k) mode=$(stat -L -c %a /keys/k); echo x > /scratch/x; touch /keys/no 2>&1; sleep 0.1; done";
    let mut containers = shell(script);
    containers[0]["volumeMounts"] = json!([
        {"name": "settings", "mountPath": "/etc/settings"},
        {"name": "settings", "mountPath": "/opt/colour", "subPath": "colour"},
        {"name": "keys", "mountPath": "/keys"}, {"name": "scratch", "mountPath": "/scratch"}]);
    machine
        .pod(
            "volumes",
            json!({"containers": containers, "volumes": [
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "keys", "secret": {"secretName": "keys", "items": [{"key": "key", "path": "k", "mode": 256}]}},
            {"name": "scratch", "emptyDir": {}}]}),
        )
        .await;
    machine.until_printed("volumes", "live=red once=red key=s3 mode=400").await;
    machine.until_printed("volumes", "Read-only file system").await;
    machine.config("settings", json!({"colour": "blue"})).await;
    machine.until_printed("volumes", "live=blue once=red key=s3").await;
}

async fn a_bad_image_is_told_and_can_be_mended(machine: &Machine) {
    let containers = json!([
        {"name": "good", "image": "shell", "imagePullPolicy": "IfNotPresent", "args": ["sleep 1000"]},
        {"name": "bad", "image": "no-such-image", "imagePullPolicy": "IfNotPresent", "args": ["sleep 1000"]}]);
    machine.pod("mixed", json!({"containers": containers})).await;
    let of = |status: &Value, name: &str| {
        let all = status["containerStatuses"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["name"] == name).unwrap_or_default()
    };
    let backing_off = |status: &Value| {
        of(status, "bad")["state"]["waiting"]["reason"] == "ImagePullBackOff" && of(status, "good")["ready"] == true
    };
    let before = machine.until("mixed", "backs off", backing_off).await;
    let told = of(&before, "bad")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("--image-map"), "{told}");
    let patch = json!({"spec": {"containers": [{"name": "bad", "image": "shell"}]}});
    machine.pods().patch("mixed", &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
    let after = machine.until("mixed", "is healed", is_ready).await;
    assert_eq!(of(&before, "good")["containerID"], of(&after, "good")["containerID"], "the good one is not touched");
    assert_eq!(of(&after, "good")["restartCount"], 0);
}

async fn a_deployment_is_mended_without_touching_its_neighbour(machine: &Machine) {
    machine.pod("neighbour", json!({"containers": shell("exec sleep 1000")})).await;
    let before = machine.until("neighbour", "is ready", is_ready).await;
    let deployments: Api<Deployment> = Api::default_namespaced(machine.client.clone());
    let mut containers = shell("exec sleep 1000");
    containers[0]["image"] = json!("no-such-image");
    let broken = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "broken"}, "spec": {
        "selector": {"matchLabels": {"app": "broken"}},
        "template": {"metadata": {"labels": {"app": "broken"}}, "spec": {"containers": containers}}}});
    deployments.patch("broken", &PatchParams::apply("test"), &Patch::Apply(&broken)).await.unwrap();
    let pods = ListParams::default().labels("app=broken");
    eventually("its pod backs off", || async {
        let found = machine.pods().list(&pods).await.unwrap().items;
        let statuses: Vec<Value> = found.into_iter().map(|pod| serde_json::to_value(pod.status).unwrap()).collect();
        let backs_off = statuses.iter().any(|status| waiting(status, "ImagePullBackOff"));
        if backs_off { Ok(()) } else { Err(format!("{statuses:?}")) }
    })
    .await;
    let mended = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "shell"}]}}}});
    deployments.patch("broken", &PatchParams::default(), &Patch::Strategic(&mended)).await.unwrap();
    eventually("it is mended", || async {
        let status = deployments.get("broken").await.unwrap().status.unwrap_or_default();
        let is_done = status.ready_replicas == Some(1) && status.replicas == Some(1);
        if is_done { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    let after = machine.until("neighbour", "is ready", is_ready).await;
    let life = |status: &Value| {
        let container = &status["containerStatuses"][0];
        (container["containerID"].clone(), container["restartCount"].clone())
    };
    assert_eq!(life(&before), life(&after));
}

async fn a_program_that_is_not_there_is_told(machine: &Machine) {
    let containers = json!([{"name": "main", "image": "missing-program", "imagePullPolicy": "IfNotPresent"}]);
    machine.pod("absent", json!({"containers": containers, "restartPolicy": "Never"})).await;
    let status = machine.until("absent", "fails", |status| status["phase"] == "Failed").await;
    let ended = &status["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((ended["reason"].as_str(), ended["exitCode"].as_i64()), (Some("StartError"), Some(128)), "{status:#}");
    assert!(ended["message"].as_str().unwrap().contains("/no/such"), "{ended}");
}

async fn a_missing_reference_is_told_and_waited_for(machine: &Machine) {
    let mut containers = shell("echo late=$LATE; sleep 1000");
    containers[0]["env"] = json!([{"name": "LATE", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "k"}}}]);
    machine.pod("waits", json!({"containers": containers})).await;
    let status = machine.until("waits", "is told", |status| waiting(status, "CreateContainerConfigError")).await;
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["message"], "configmap \"late\" not found");
    machine.config("late", json!({"k": "v"})).await;
    machine.until_printed("waits", "late=v").await;
}

async fn containers_run_in_order(machine: &Machine) {
    let one = |name: &str, script: &str| {
        json!({"name": name, "image": "shell", "imagePullPolicy": "IfNotPresent", "args": [script],
            "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]})
    };
    let mut side = one("side", "echo side >> /shared/order; exec sleep 1000");
    side["restartPolicy"] = json!("Always");
    machine
        .pod(
            "order",
            json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "shared", "emptyDir": {}}],
            "initContainers": [one("first", "echo first >> /shared/order"), side],
            "containers": [one("main", "sleep 0.3; echo main >> /shared/order; cat /shared/order | tr '\\n' ' '")]}),
        )
        .await;
    machine.until("order", "succeeds", |status| status["phase"] == "Succeeded").await;
    machine.until_printed("order", "first side main").await;
}

async fn crashes_are_counted(machine: &Machine) {
    let mut containers = shell("echo gone > /dev/termination-log; exit 3");
    machine.pod("crash", json!({"containers": containers.take()})).await;
    let status = machine.until("crash", "backs off", |status| waiting(status, "CrashLoopBackOff")).await;
    let container = &status["containerStatuses"][0];
    assert_eq!(container["restartCount"], 1, "{status:#}");
    let last = &container["lastState"]["terminated"];
    let told = (last["exitCode"].as_i64(), last["reason"].as_str(), last["message"].as_str());
    assert_eq!(told, (Some(3), Some("Error"), Some("gone\n")));
    assert!(container["state"]["waiting"]["message"].as_str().unwrap().starts_with("back-off 10s restarting failed"));
}

async fn services_lead_to_ready_pods(machine: &Machine) {
    let port = free_port().unwrap();
    let services: Api<Service> = Api::default_namespaced(machine.client.clone());
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {
        "type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": port, "targetPort": "http"}]}});
    services.patch("web", &PatchParams::apply("test"), &Patch::Apply(&service)).await.unwrap();
    let mut containers = shell(
        "mkdir -p /tmp/w && cd /tmp/w && echo hello > index.html && python3 -m http.server 8000 & \
         until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8000))'; \
         do sleep 0.1; done; echo listening; wait",
    );
    let flag = machine.folder.path().join("web");
    std::fs::create_dir(&flag).unwrap();
    containers[0]["ports"] = json!([{"name": "http", "containerPort": 8000}]);
    containers[0]["volumeMounts"] = json!([{"name": "flag", "mountPath": "/flag"}]);
    let probe = json!({"exec": {"command": ["test", "-e", "/flag/ready"]}, "periodSeconds": 1, "failureThreshold": 1});
    containers[0]["readinessProbe"] = probe;
    let volumes = json!([{"name": "flag", "hostPath": {"path": flag}}]);
    machine.pod("web", json!({"containers": containers, "volumes": volumes})).await;
    machine.until_printed("web", "listening").await;
    eventually("the service has its port", || async {
        let annotations = services.get("web").await.unwrap().metadata.annotations.unwrap_or_default();
        let known = annotations.get("skep.dev/local-ports").is_some_and(|ports| *ports == format!("{port}:{port}"));
        if known { Ok(()) } else { Err(format!("{annotations:?}")) }
    })
    .await;
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "its pod listens, and is not ready");
    std::fs::write(flag.join("ready"), "").unwrap();
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    eventually("the service answers on this machine", || async {
        let text = ask().map_err(|error| error.to_string())?;
        if text.ends_with("hello\n") { Ok(()) } else { Err(text) }
    })
    .await;
    // The same by name, from another pod.
    let script =
        format!("python3 -c 'import urllib.request as r; print(r.urlopen(\"http://web.default.svc:{port}\").read())'");
    machine.pod("asks", json!({"restartPolicy": "Never", "containers": shell(&script)})).await;
    machine.until_printed("asks", "hello").await;
    std::fs::remove_file(flag.join("ready")).unwrap();
    eventually("the service of a pod that is no longer ready refuses", || async {
        if TcpStream::connect(("127.0.0.1", port)).is_err() { Ok(()) } else { Err("it answers".to_owned()) }
    })
    .await;
    std::fs::write(flag.join("ready"), "").unwrap();
    eventually("it answers again", || async { ask().map(drop).map_err(|error| error.to_string()) }).await;
    machine.pods().delete("web", &DeleteParams::default().grace_period(1)).await.unwrap();
    eventually("the service refuses", || async {
        if TcpStream::connect(("127.0.0.1", port)).is_err() { Ok(()) } else { Err("it answers".to_owned()) }
    })
    .await;
}

async fn a_pod_reaches_the_api_server(machine: &Machine) {
    let script = "cd /var/run/secrets/kubernetes.io/serviceaccount; python3 - <<'EOF'\n\
        import json, ssl, urllib.request as r\n\
        c = ssl.create_default_context(cafile='ca.crt')\n\
        q = r.Request('https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews', method='POST',\n\
        \x20 data=json.dumps({'apiVersion': 'authentication.k8s.io/v1', 'kind': 'SelfSubjectReview'}).encode(),\n\
        \x20 headers={'Authorization': 'Bearer ' + open('token').read(), 'Content-Type': 'application/json'})\n\
        print(json.load(r.urlopen(q, context=c))['status']['userInfo']['username'])\n\
        EOF";
    machine.pod("caller", json!({"restartPolicy": "Never", "containers": shell(script)})).await;
    machine.until_printed("caller", "system:serviceaccount:default:default").await;
}

/// As the node deletes pods whose status is being written.
async fn a_deletion_of_one_object_does_not_mind_its_changes(machine: &Machine) {
    let maps: Api<ConfigMap> = Api::default_namespaced(machine.client.clone());
    for number in 0..50 {
        let name = format!("changing-{number}");
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let uid = maps.create(&PostParams::default(), &map).await.unwrap().metadata.uid;
        let condition = Preconditions { uid, resource_version: None };
        let parameters = DeleteParams::default().preconditions(condition);
        let changes = futures::future::join_all((0..3).map(|number| {
            let change = Patch::Merge(json!({"metadata": {"annotations": {"n": number.to_string()}}}));
            let (maps, name) = (maps.clone(), name.clone());
            // Those that come too late find nothing.
            async move { maps.patch(&name, &PatchParams::default(), &change).await.ok() }
        }));
        let (_, deleted) = futures::future::join(changes, maps.delete(&name, &parameters)).await;
        deleted.unwrap();
    }
}

async fn deletion_is_graceful(machine: &Machine) {
    let script =
        "trap 'echo asked; sleep 0.3; echo done > /flag/done; exit 0' TERM; echo up; while true; do sleep 0.05; done";
    let mut containers = shell(script);
    let flag = machine.folder.path().join("flag");
    std::fs::create_dir(&flag).unwrap();
    containers[0]["volumeMounts"] = json!([{"name": "flag", "mountPath": "/flag"}]);
    machine
        .pod("polite", json!({"containers": containers, "volumes": [{"name": "flag", "hostPath": {"path": flag}}]}))
        .await;
    machine.until_printed("polite", "up").await;
    machine.pods().delete("polite", &DeleteParams::default()).await.unwrap();
    eventually("the pod is gone", || async {
        match machine.pods().get_opt("polite").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert!(flag.join("done").exists(), "it had the time to finish");
}
