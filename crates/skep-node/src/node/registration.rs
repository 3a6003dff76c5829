//! The object of the node, and the sign of life.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Resources;

/// How often the API server learns that the node is there, and after what time it may doubt it.
const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASE: i32 = 40;
const RETRY: Duration = Duration::from_millis(500);
/// As many as a kubelet takes.
const MOST_PODS: &str = "110";

/// Where the API server finds the node's own API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletAddress {
    pub address: IpAddr,
    pub port: u16,
}

/// What pods may use of this machine: all of it.
pub(super) fn resources() -> Resources {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Resources::from([
        ("cpu".to_owned(), Quantity(cpus.to_string())),
        ("memory".to_owned(), Quantity(format!("{}Ki", memory.unwrap_or(1_048_576)))),
        ("pods".to_owned(), Quantity(MOST_PODS.to_owned())),
    ])
}

/// Registers the node, and renews its lease for ever.
pub(super) async fn keep(
    client: Client,
    name: String,
    address: IpAddr,
    resources: Resources,
    kubelet: Option<KubeletAddress>,
    known: watch::Sender<bool>,
) {
    let status = status(&name, address, &resources, kubelet);
    let mut delay = RETRY;
    while let Err(error) = register(&client, &name, &status).await {
        tracing::warn!(node = name, %error, "node not registered; trying again");
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(HEARTBEAT);
    }
    known.send_replace(true);
    loop {
        if let Err(error) = renew(&client, &name).await {
            tracing::debug!(%error, "lease not renewed");
        }
        tokio::time::sleep(HEARTBEAT).await;
    }
}

async fn register(client: &Client, name: &str, status: &Value) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let known = if let Some(node) = nodes.get_opt(name).await? {
        node
    } else {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture()}}});
        let node: Node = serde_json::from_value(node).map_err(kube::Error::SerdeError)?;
        nodes.create(&PostParams::default(), &node).await?
    };
    let mut status = status.clone();
    let conditions = known.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready" && condition.status == "True");
    let since = ready.and_then(|condition| condition.last_transition_time.clone());
    let since = json!(since.map_or_else(|| Timestamp::now().strftime("%FT%TZ").to_string(), |time| time.0.to_string()));
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"] = since.clone();
        condition["lastHeartbeatTime"] = json!(Timestamp::now().strftime("%FT%TZ").to_string());
    }
    let patch = json!({"status": status});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Strategic(&patch)).await?;
    Ok(())
}

fn status(name: &str, address: IpAddr, resources: &Resources, kubelet: Option<KubeletAddress>) -> Value {
    let mut addresses =
        vec![json!({"type": "InternalIP", "address": kubelet.map_or(address, |kubelet| kubelet.address)})];
    addresses.push(json!({"type": "Hostname", "address": name}));
    let good = |type_: &str, status: &str, reason: &str, message: &str| json!({"type": type_, "status": status, "reason": reason, "message": message});
    let mut status = json!({
        "addresses": addresses,
        "capacity": resources,
        "allocatable": resources,
        "conditions": [
            good("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            good("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            good("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            good("Ready", "True", "KubeletReady", "the node runs pods as processes"),
        ],
        "nodeInfo": {
            "architecture": architecture(), "operatingSystem": "linux", "osImage": "Skep",
            "kernelVersion": read("/proc/sys/kernel/osrelease"), "bootID": read("/proc/sys/kernel/random/boot_id"),
            "machineID": read("/etc/machine-id"), "systemUUID": read("/etc/machine-id"),
            "containerRuntimeVersion": concat!("skep://", env!("CARGO_PKG_VERSION")),
            "kubeletVersion": concat!("v1.36.3+skep-", env!("CARGO_PKG_VERSION")), "kubeProxyVersion": "",
        },
        // Attach and exec come as WebSockets, not as SPDY.
        "declaredFeatures": ["ExtendWebSocketsToKubelet"],
    });
    if let Some(kubelet) = kubelet {
        status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": kubelet.port}});
    }
    status
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

async fn renew(client: &Client, name: &str) -> Result<(), kube::Error> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let now = MicroTime(Timestamp::now());
    let change = json!({"spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE, "renewTime": now}});
    match leases.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(answer)) if answer.code == 404 => {
            let mut lease = change;
            lease["metadata"] = json!({"name": name});
            let lease: Lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
            leases.create(&PostParams::default(), &lease).await.map(drop)
        }
        Err(error) => Err(error),
    }
}
