//! Pods, as far as the phase of a workload depends on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize};
use skep_api::names::labels;
use skep_control::Keeper;

use super::kind::named_as;
use super::packed::{Packed, Packer};

/// Reasons to wait that do not go away by themselves.
const HOPELESS: [&str; 3] = ["CrashLoopBackOff", "CreateContainerError", "InvalidImageName"];

/// A pod, reduced to what it says about its workload.
#[derive(Clone, Debug)]
pub struct PodSeen {
    metadata: ObjectMeta,
    pub class: PodClass,
    /// `status.phase`.
    pub phase: String,
}

/// How a pod fares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodClass {
    /// It is on its way out and does not count.
    Terminating,
    Running,
    Pending,
    /// One word that says why, if there is one.
    Failed(Option<String>),
}

impl PodSeen {
    /// Whether the pod carries all of these labels.
    pub fn has_labels(&self, wanted: &BTreeMap<String, String>) -> bool {
        let Some(labels) = &self.metadata.labels else { return false };
        wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    /// Whether the pod is on its way out.
    pub fn is_terminating(&self) -> bool {
        self.class == PodClass::Terminating
    }
}

impl<'de> Deserialize<'de> for PodSeen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pod = Pod::deserialize(deserializer)?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
        let class = classify(&pod, &phase);
        let metadata = ObjectMeta {
            name: pod.metadata.name,
            namespace: pod.metadata.namespace,
            uid: pod.metadata.uid,
            resource_version: pod.metadata.resource_version,
            deletion_timestamp: pod.metadata.deletion_timestamp,
            labels: pod.metadata.labels,
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, class, phase })
    }
}

fn classify(pod: &Pod, phase: &str) -> PodClass {
    if pod.metadata.deletion_timestamp.is_some() {
        return PodClass::Terminating;
    }
    let containers: Vec<&ContainerStatus> =
        pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten()).collect();
    if let Some(reason) = containers.iter().find_map(|container| failure(container)) {
        return PodClass::Failed(Some(reason));
    }
    match phase {
        "Running" if !containers.is_empty() && containers.iter().all(|container| container.ready) => PodClass::Running,
        "Succeeded" => PodClass::Running,
        "Failed" => PodClass::Failed(Some("PodFailed".to_owned())),
        _ => PodClass::Pending,
    }
}

fn failure(container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    if let Some(reason) = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref()) {
        return HOPELESS.contains(&reason).then(|| reason.to_owned());
    }
    state.terminated.as_ref().filter(|ended| ended.exit_code != 0).map(|_| "ContainerTerminated".to_owned())
}

impl kube::Resource for PodSeen {
    named_as!(Pod, metadata);
}

/// Keeps pods in few bytes, and beside them the name by which those of a workload are picked out of thousands.
#[derive(Debug, Default)]
pub struct PodKeeper(Packer);

/// A pod as it is kept.
#[derive(Debug)]
pub struct KeptPod {
    workload: Option<Box<str>>,
    rest: Packed,
}

impl KeptPod {
    /// Whether the pod can be one of those with these labels.
    pub(super) fn may_have(&self, wanted: &BTreeMap<String, String>) -> bool {
        wanted.get(labels::TOOLHIVE_NAME).is_none_or(|name| self.workload.as_deref() == Some(name))
    }
}

impl Keeper<PodSeen> for PodKeeper {
    type Kept = KeptPod;

    fn keep(&self, pod: &Arc<PodSeen>) -> KeptPod {
        let workload = pod.metadata.labels.as_ref().and_then(|labels| labels.get(labels::TOOLHIVE_NAME));
        let rest = self.0.pack(&(&pod.metadata, &pod.class, &pod.phase));
        KeptPod { workload: workload.map(|name| name.as_str().into()), rest }
    }

    fn recall(&self, kept: &KeptPod) -> Option<Arc<PodSeen>> {
        let (metadata, class, phase) = self.0.unpack(&kept.rest)?;
        Some(Arc::new(PodSeen { metadata, class, phase }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(phase: &str, containers: &Value, deleted: bool) -> PodClass {
        let mut pod = json!({"metadata": {"name": "p"}, "status": {"phase": phase, "containerStatuses": containers}});
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value::<PodSeen>(pod).unwrap().class
    }

    fn container(ready: bool, state: &Value) -> Value {
        json!({"name": "c", "ready": ready, "image": "i", "imageID": "", "restartCount": 0, "state": state})
    }

    #[test]
    fn pods_are_classified() {
        let waiting = |reason: &str| container(false, &json!({"waiting": {"reason": reason}}));
        let ended = |code: i32| container(false, &json!({"terminated": {"exitCode": code}}));
        let up = container(true, &json!({"running": {}}));
        let failed = |reason: &str| PodClass::Failed(Some(reason.to_owned()));
        for (phase, containers, expected) in [
            ("Running", json!([up]), PodClass::Running),
            ("Running", json!([]), PodClass::Pending),
            ("Running", json!([up, container(false, &json!({"running": {}}))]), PodClass::Pending),
            ("Succeeded", json!([ended(0)]), PodClass::Running),
            ("Pending", json!([waiting("ImagePullBackOff")]), PodClass::Pending),
            ("Pending", json!([waiting("InvalidImageName")]), failed("InvalidImageName")),
            ("Running", json!([up, waiting("CrashLoopBackOff")]), failed("CrashLoopBackOff")),
            ("Running", json!([ended(3)]), failed("ContainerTerminated")),
            ("Failed", json!([]), failed("PodFailed")),
            ("Unknown", json!([]), PodClass::Pending),
        ] {
            assert_eq!(class(phase, &containers, false), expected, "{phase} {containers}");
            assert_eq!(class(phase, &containers, true), PodClass::Terminating);
        }
    }

    #[test]
    fn pods_are_kept_and_picked_out() {
        let keeper = PodKeeper::default();
        let pod = |name: &str, labels: Value| {
            let pod = json!({"metadata": {"name": name, "uid": "u", "labels": labels}, "status": {"phase": "Failed"}});
            Arc::new(serde_json::from_value::<PodSeen>(pod).unwrap())
        };
        let (mine, other) = (pod("a", json!({"toolhive-name": "s", "x": "y"})), pod("b", json!({"x": "y"})));
        for pod in [&mine, &other] {
            let again = keeper.recall(&keeper.keep(pod)).unwrap();
            assert_eq!((&again.metadata, &again.class, &again.phase), (&pod.metadata, &pod.class, &pod.phase));
        }
        let selector = labels::mcp_server("s");
        assert!(keeper.keep(&mine).may_have(&selector));
        assert!(!keeper.keep(&other).may_have(&selector));
        assert!(!keeper.keep(&mine).may_have(&labels::mcp_server("t")));
        assert!(keeper.keep(&other).may_have(&labels::embedding_server("s")));
    }
}
