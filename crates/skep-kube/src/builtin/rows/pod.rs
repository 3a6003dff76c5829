//! Pods and nodes.

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{AGE, Declared, Field, NAME, Words, age, count, items, name, or_none, text};

pub(super) fn pod_columns() -> Vec<Declared> {
    vec![
        NAME,
        Declared("Ready", "string", 0, Words("How many of the pod's containers are ready.")),
        Declared("Status", "string", 0, Words("What the containers of the pod are up to, in one word.")),
        Declared("Restarts", "string", 0, Words("How often containers of the pod were started again, and when last.")),
        AGE,
        Declared("IP", "string", 1, Field("status.podIP")),
        Declared("Node", "string", 1, Field("spec.nodeName")),
        Declared("Nominated Node", "string", 1, Field("status.nominatedNodeName")),
        Declared("Readiness Gates", "string", 1, Field("spec.readinessGates")),
    ]
}

pub(super) fn pod_row(pod: &Value, now: OffsetDateTime) -> Vec<Value> {
    let summary = summarize(pod);
    let mut restarts = summary.restarts.to_string();
    if let (true, Some(last)) = (summary.restarts != 0, summary.last_restart) {
        restarts = format!("{restarts} ({} ago)", crate::age::shown(now - last));
    }
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let address = items(status, "podIPs").first().map_or("", |address| text(address, "ip"));
    let address = if address.is_empty() { text(status, "podIP") } else { address };
    vec![
        name(pod),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        age(pod, now),
        or_none(address),
        or_none(text(spec, "nodeName")),
        or_none(text(status, "nominatedNodeName")),
        readiness_gates(pod),
    ]
}

fn readiness_gates(pod: &Value) -> Value {
    let gates = items(&pod["spec"], "readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = gates.iter().filter(|gate| condition(pod, text(gate, "conditionType")) == Some("True")).count();
    format!("{open}/{}", gates.len()).into()
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let found = items(&object["status"], "conditions").iter().find(|condition| condition["type"] == kind)?;
    found["status"].as_str()
}

struct Summary {
    ready: i64,
    total: usize,
    restarts: i64,
    last_restart: Option<OffsetDateTime>,
    reason: String,
}

impl Summary {
    fn add_restarts(&mut self, container: &Value) {
        self.restarts = self.restarts.saturating_add(count(&container["restartCount"]));
        let last = container["lastState"]["terminated"]["finishedAt"].as_str();
        let last = last.and_then(|time| OffsetDateTime::parse(time, &Rfc3339).ok());
        self.last_restart = self.last_restart.max(last);
    }
}

fn summarize(pod: &Value) -> Summary {
    let status = &pod["status"];
    let mut summary = Summary {
        ready: 0,
        total: items(&pod["spec"], "containers").len(),
        restarts: 0,
        last_restart: None,
        reason: text(status, "phase").to_owned(),
    };
    if !text(status, "reason").is_empty() {
        text(status, "reason").clone_into(&mut summary.reason);
    }
    let gated = items(status, "conditions")
        .iter()
        .any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated");
    if gated {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    let initializing = initialize(pod, &mut summary);
    if !initializing || condition(pod, "Initialized") == Some("True") {
        run(pod, &mut summary);
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        let phase = text(status, "phase");
        if status["reason"] == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

/// Whether init containers are still to run; then they say what the pod is up to.
fn initialize(pod: &Value, summary: &mut Summary) -> bool {
    let containers = items(&pod["spec"], "initContainers");
    let restartable = |name: &str| {
        containers.iter().any(|container| container["name"] == name && container["restartPolicy"] == "Always")
    };
    summary.total += containers.iter().filter(|container| container["restartPolicy"] == "Always").count();
    for (index, container) in items(&pod["status"], "initContainerStatuses").iter().enumerate() {
        let sidecar = restartable(text(container, "name"));
        summary.add_restarts(container);
        let state = &container["state"];
        let ended = &state["terminated"];
        if ended.is_object() && count(&ended["exitCode"]) == 0 {
            continue;
        }
        if sidecar && container["started"] == true {
            summary.ready += i64::from(container["ready"] == true);
            continue;
        }
        let waiting = text(&state["waiting"], "reason");
        summary.reason = if ended.is_object() {
            format!("Init:{}", end_reason(ended))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", containers.len())
        };
        return true;
    }
    false
}

/// Why a container ended: what it says, or its signal or exit code.
fn end_reason(ended: &Value) -> String {
    match (text(ended, "reason"), count(&ended["signal"])) {
        ("", 0) => format!("ExitCode:{}", count(&ended["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn run(pod: &Value, summary: &mut Summary) {
    let mut running = false;
    for container in items(&pod["status"], "containerStatuses").iter().rev() {
        summary.add_restarts(container);
        let state = &container["state"];
        let waiting = text(&state["waiting"], "reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if state["terminated"].is_object() {
            summary.reason = end_reason(&state["terminated"]);
        } else if container["ready"] == true && state["running"].is_object() {
            running = true;
            summary.ready += 1;
        }
    }
    // One container is done, others go on.
    if summary.reason == "Completed" && running {
        let reason = if condition(pod, "Ready") == Some("True") { "Running" } else { "NotReady" };
        reason.clone_into(&mut summary.reason);
    }
}

pub(super) fn node_columns() -> Vec<Declared> {
    vec![
        NAME,
        Declared("Status", "string", 0, Words("Whether the node is ready and may be scheduled on.")),
        Declared("Roles", "string", 0, Words("What the node is there for, by its labels.")),
        AGE,
        Declared("Version", "string", 0, Field("status.nodeInfo.kubeletVersion")),
        Declared("Internal-IP", "string", 1, Field("status.addresses")),
        Declared("External-IP", "string", 1, Field("status.addresses")),
        Declared("OS-Image", "string", 1, Field("status.nodeInfo.osImage")),
        Declared("Kernel-Version", "string", 1, Field("status.nodeInfo.kernelVersion")),
        Declared("Container-Runtime", "string", 1, Field("status.nodeInfo.containerRuntimeVersion")),
    ]
}

pub(super) fn node_row(node: &Value, now: OffsetDateTime) -> Vec<Value> {
    let mut status = match condition(node, "Ready") {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let info = &node["status"]["nodeInfo"];
    let or_unknown = |name: &str| match text(info, name) {
        "" => Value::from("<unknown>"),
        text => text.into(),
    };
    let address = |kind: &str| {
        let found = items(&node["status"], "addresses").iter().find(|address| address["type"] == kind);
        or_none(found.map_or("", |address| text(address, "address")))
    };
    vec![
        name(node),
        status.into(),
        roles(node),
        age(node, now),
        text(info, "kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        or_unknown("osImage"),
        or_unknown("kernelVersion"),
        or_unknown("containerRuntimeVersion"),
    ]
}

fn roles(node: &Value) -> Value {
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in node["metadata"]["labels"].as_object().into_iter().flatten() {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => roles.push(role),
            _ if key == "kubernetes.io/role" => roles.extend(value.as_str().filter(|role| !role.is_empty())),
            _ => {}
        }
    }
    roles.sort_unstable();
    roles.dedup();
    or_none(&roles.join(","))
}
