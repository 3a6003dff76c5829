//! Gives pods to the node. There is one node, or a few; nothing is balanced, nobody is preempted.

mod fit;
mod room;
mod unschedulable;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, PersistentVolumeClaim, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::Value;
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::{ControllerError, found};
use super::events::{Note, Recorder, Severity};
use super::objects::Objects;
use super::pods;
use room::Taken;

const SOURCE: &str = "default-scheduler";
/// One behind the other: each choice must see what the one before it has taken.
const CONCURRENCY: usize = 1;

pub(super) struct Controller {
    pods: Objects<Pod>,
    nodes: Objects<Node>,
    claims: Objects<PersistentVolumeClaim>,
    recorder: Recorder,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    pub(super) fn new(cluster: &mut Cluster) -> Self {
        let pods = cluster.objects::<Pod>();
        let nodes = cluster.objects::<Node>();
        let claims = cluster.objects::<PersistentVolumeClaim>();
        let queue = Arc::new(Queue::default());
        let (wake, all) = (queue.clone(), pods.clone());
        let wake_waiting = move || {
            for pod in all.cache().all().iter().filter(|pod| is_waiting(pod)) {
                wake.add(Key::of(pod.as_ref()));
            }
        };
        let (wake, wake_others) = (queue.clone(), wake_waiting.clone());
        pods.cache().on_transition(move |change| {
            if let Some(pod) = change.after().filter(|pod| is_waiting(pod)) {
                wake.add(Key::of(pod));
            }
            if makes_room(change.before().as_deref(), change.after()) {
                wake_others();
            }
        });
        let seen: parking_lot::Mutex<HashMap<String, Value>> = parking_lot::Mutex::default();
        let wake = wake_waiting.clone();
        nodes.cache().on_change(move |node| {
            // Heartbeats change nodes all the time; only what decides about pods matters.
            let relevant = fit::fingerprint(node);
            if seen.lock().insert(node.name_any(), relevant.clone()) != Some(relevant) {
                wake();
            }
        });
        claims.cache().on_change(move |_| wake_waiting());
        Self { pods, nodes, claims, recorder: cluster.recorder.clone(), queue }
    }

    pub(super) async fn run(self) {
        self.pods.cache().complete().await;
        self.nodes.cache().complete().await;
        self.claims.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(pod) = self.pods.get(&key).filter(|pod| is_waiting(pod)) else { return Ok(Next::Rest) };
        let nodes = self.nodes.cache().all();
        let claims = self.claims.in_namespace(&key.namespace);
        match unschedulable::choose(&pod, &nodes, &claims, &self.taken()) {
            Ok(node) => self.bind(&pod, &node).await?,
            Err(message) => self.refuse(&pod, message).await?,
        }
        Ok(Next::Rest)
    }

    /// What the pods of each node have taken.
    fn taken(&self) -> HashMap<String, Taken> {
        let mut taken: HashMap<String, Taken> = HashMap::new();
        for pod in self.pods.cache().all() {
            if let Some(node) = place(&pod) {
                taken.entry(node.to_owned()).or_default().add(&pod);
            }
        }
        taken
    }

    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), ControllerError> {
        let Key { namespace, name } = Key::of(pod);
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace.clone()),
                // Bind this pod, not another one that has taken its name meanwhile.
                uid: pod.uid(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let api = self.pods.api(&namespace);
        let answer = api.create_subresource::<_, Value>("binding", &name, &PostParams::default(), &binding).await;
        if found(answer.map_err(Into::into))?.is_some() {
            let message = format!("Successfully assigned {namespace}/{name} to {node}");
            self.tell(pod, Severity::Normal, "Scheduled", "Binding", message);
        }
        if let Some(bound) = self.pods.live(&Key::of(pod)).await? {
            self.pods.cache().until_seen(&bound).await;
        }
        Ok(())
    }

    async fn refuse(&self, pod: &Pod, message: String) -> Result<(), ControllerError> {
        let Some(updated) = refused(pod, &message, Timestamp::now()) else { return Ok(()) };
        found(self.pods.replace_status(&updated).await)?;
        self.tell(pod, Severity::Warning, "FailedScheduling", "Scheduling", message);
        Ok(())
    }

    fn tell(&self, pod: &Pod, severity: Severity, reason: &'static str, action: &'static str, message: String) {
        self.recorder.record(pod, Note { source: SOURCE, severity, reason, message, action: Some(action) });
    }
}

/// Pods of another scheduler, and pods that are not to be scheduled yet, are left alone.
fn is_waiting(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    let ours = matches!(spec.scheduler_name.as_deref(), None | Some("" | SOURCE));
    let unbound = spec.node_name.as_deref().unwrap_or_default().is_empty();
    ours && unbound && !gated && pods::is_active(pod)
}

/// The node on which a pod takes room.
fn place(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    (!node.is_empty() && !pods::is_finished(pod)).then_some(node)
}

fn makes_room(before: Option<&Pod>, after: Option<&Pod>) -> bool {
    before.and_then(place).is_some() && after.and_then(place).is_none()
}

/// The pod with the condition that says why it waits, unless it says so already.
fn refused(pod: &Pod, message: &str, now: Timestamp) -> Option<Pod> {
    let known = pods::condition(pod, "PodScheduled");
    if known.is_some_and(|known| known.status == "False" && known.message.as_deref() == Some(message)) {
        return None;
    }
    let since = known.filter(|known| known.status == "False").and_then(|known| known.last_transition_time.clone());
    let condition = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(since.unwrap_or(Time(now))),
        observed_generation: pod.metadata.generation,
        last_probe_time: None,
    };
    let mut updated = pod.clone();
    let conditions = updated.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.retain(|known| known.type_ != condition.type_);
    conditions.push(condition);
    Some(updated)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"generation": 2}, "spec": spec})).unwrap()
    }

    #[test]
    fn only_pods_that_wait_for_us_are_scheduled() {
        let table = [
            (json!({"containers": []}), true),
            (json!({"containers": [], "schedulerName": "default-scheduler"}), true),
            (json!({"containers": [], "schedulerName": "mine"}), false),
            (json!({"containers": [], "nodeName": "n"}), false),
            (json!({"containers": [], "schedulingGates": [{"name": "wait"}]}), false),
        ];
        for (spec, expected) in table {
            assert_eq!(is_waiting(&pod(&spec)), expected, "{spec}");
        }
    }

    #[test]
    fn a_pod_that_ends_or_goes_makes_room() {
        let waiting = pod(&json!({"containers": []}));
        let there = pod(&json!({"containers": [], "nodeName": "n"}));
        let mut finished = there.clone();
        finished.status.get_or_insert_default().phase = Some("Succeeded".to_owned());
        let table = [
            (Some(&there), None, true),
            (Some(&there), Some(&finished), true),
            (Some(&there), Some(&there), false),
            (Some(&waiting), Some(&there), false),
            (Some(&waiting), None, false),
            (Some(&finished), None, false),
            (None, Some(&there), false),
        ];
        for (before, after, expected) in table {
            assert_eq!(makes_room(before, after), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn the_same_refusal_is_written_once() {
        let refused_once = refused(&pod(&json!({"containers": []})), "no", Timestamp::UNIX_EPOCH).unwrap();
        assert!(refused(&refused_once, "no", Timestamp::now()).is_none());
        let other = refused(&refused_once, "still no", Timestamp::now()).unwrap();
        let condition = pods::condition(&other, "PodScheduled").unwrap();
        assert_eq!(condition.last_transition_time, Some(Time(Timestamp::UNIX_EPOCH)));
        assert_eq!(condition.observed_generation, Some(2));
    }
}
