//! The object of the node, and the sign of life.
//!
//! The lease is the sign of life; the status is for everything else. A control plane that has missed the sign for a while
//! (this machine was asleep, or the API server out of reach) writes into the status that nothing is known of the node,
//! and only the node itself takes that back: it looks at its object with every heartbeat.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Resources;
use crate::pod::whole;

/// How often the API server learns that the node is there, and after what time it may doubt it.
const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASE: i32 = 40;
/// How old the last word about the conditions may be, even though nothing has changed.
const LONGEST_SILENCE: Duration = Duration::from_mins(5);
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

/// Registers the node; renews its lease and keeps its status true for ever.
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
    while let Err(error) = register(&client, &name, &status, true).await {
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
        if let Err(error) = register(&client, &name, &status, false).await {
            tracing::debug!(%error, "status of the node not looked after");
        }
    }
}

/// Makes the object of the node if there is none, and tells its status, `always` or when that is no longer what the
/// object says.
async fn register(client: &Client, name: &str, status: &Value, always: bool) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let known = if let Some(node) = nodes.get_opt(name).await? {
        node
    } else {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture()}}});
        let node: Node = serde_json::from_value(node).map_err(kube::Error::SerdeError)?;
        nodes.create(&PostParams::default(), &node).await?
    };
    let known = known.status.and_then(|status| status.conditions).unwrap_or_default();
    let (conditions, is_news) = conditions(&status["conditions"], &known, Timestamp::now());
    if !always && !is_news {
        return Ok(());
    }
    let mut status = status.clone();
    status["conditions"] = conditions;
    nodes.patch_status(name, &PatchParams::default(), &Patch::Strategic(&json!({"status": status}))).await?;
    Ok(())
}

/// The conditions with their times, and whether that is worth telling: somebody else has written something different,
/// or it was said too long ago.
fn conditions(wanted: &Value, known: &[NodeCondition], now: Timestamp) -> (Value, bool) {
    let mut wanted = wanted.clone();
    let mut is_news = false;
    for condition in wanted.as_array_mut().into_iter().flatten() {
        let same = known.iter().find(|known| condition["type"] == known.type_ && condition["status"] == known.status);
        let since = same.and_then(|known| known.last_transition_time.as_ref()).map_or(now, |time| time.0);
        let told = same.and_then(|known| known.last_heartbeat_time.as_ref()).map(|time| time.0);
        // Clocks are set now and then: what was said in the future was not.
        let age = told.and_then(|told| Duration::try_from(now.duration_since(told)).ok());
        is_news |= age.is_none_or(|age| age >= LONGEST_SILENCE);
        condition["lastTransitionTime"] = json!(whole(since));
        condition["lastHeartbeatTime"] = json!(whole(now));
    }
    (wanted, is_news)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_written_is_taken_back() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let wanted = json!([{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]);
        let told = |ready: &str, minute: u8| -> Vec<NodeCondition> {
            let times = json!({"lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": format!("2026-01-01T00:{minute:02}:00Z")});
            let with = |mut condition: Value| {
                condition.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
                condition
            };
            let list = [json!({"type": "Ready", "status": ready}), json!({"type": "DiskPressure", "status": "False"})];
            serde_json::from_value(Value::Array(list.map(with).to_vec())).unwrap()
        };
        assert!(!conditions(&wanted, &told("True", 9), now).1, "all is well, and was said a minute ago");
        assert!(conditions(&wanted, &told("True", 4), now).1, "too long ago");
        assert!(conditions(&wanted, &told("True", 30), now).1, "a clock was wrong");
        assert!(conditions(&wanted, &[], now).1);
        let (healed, is_news) = conditions(&wanted, &told("Unknown", 9), now);
        assert!(is_news);
        let times = |index: usize| healed[index]["lastTransitionTime"].as_str().unwrap().to_owned();
        assert_eq!([times(0), times(1)], ["2026-01-01T00:10:00Z", "2026-01-01T00:00:00Z"]);
    }
}
