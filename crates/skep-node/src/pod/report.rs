//! Tells the API server how a pod is.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::context::Context;
use super::status::{PodState, status};

const RETRY: Duration = Duration::from_millis(500);

/// Reports every change of the board until the pod's object is gone.
pub(super) async fn report(context: &Context) {
    let mut board = context.board.subscribe();
    let mut pods = context.pod.clone();
    loop {
        pods.borrow_and_update();
        board.borrow_and_update();
        match send(context).await {
            Ok(()) => {}
            Err(kube::Error::Api(answer)) if answer.code == 404 => return,
            Err(error) => {
                tracing::debug!(pod = context.pod().name_any(), %error, "status not reported");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        }
        tokio::select! {
            changed = board.changed() => if changed.is_err() { return },
            changed = pods.changed() => if changed.is_err() { return },
        }
    }
}

/// Reports the state once, and does not rest before the server has it, or the pod is gone.
pub(super) async fn report_once(context: &Context) {
    loop {
        match send(context).await {
            Ok(()) => return,
            Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => return,
            Err(error) => {
                tracing::debug!(pod = context.pod().name_any(), %error, "status not reported");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Sends what the server does not have yet.
///
/// What is under way comes to its end even if nobody waits for it any more, and before the next report: otherwise the
/// server might get the older one last.
async fn send(context: &Context) -> Result<(), kube::Error> {
    let mut answered = context.answered.clone().lock_owned().await;
    let pod = newest(context.pod(), answered.as_ref());
    let wanted = status(&pod, &context.board.borrow());
    let known = pod.status.clone().unwrap_or_default();
    let Some(change) = difference(&known, &wanted) else { return Ok(()) };
    let client = context.node.client.clone();
    let sent = tokio::spawn(async move {
        *answered = Some(Arc::new(patch(client, &pod, change).await?));
        Ok(())
    });
    sent.await.map_err(|error| kube::Error::Service(error.into()))?
}

async fn patch(client: Client, pod: &Pod, change: Value) -> Result<Pod, kube::Error> {
    let api: Api<Pod> = Api::namespaced(client, &pod.namespace().unwrap_or_default());
    // A pod of the same name may have taken its place.
    let patch = json!({"metadata": {"uid": pod.uid()}, "status": change});
    api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(&patch)).await
}

/// Tells that nothing of a pod runs, nor fails, whatever an earlier life of the node has said last.
pub(crate) async fn report_ended(client: Client, pod: &Pod, host_ip: IpAddr) -> Result<(), kube::Error> {
    match ended(pod, host_ip) {
        Some(change) => patch(client, pod, change).await.map(drop),
        None => Ok(()),
    }
}

/// What changes with the end of all that runs of a pod. Its address stays, so that its next life can have it.
fn ended(pod: &Pod, host_ip: IpAddr) -> Option<Value> {
    let known = pod.status.clone().unwrap_or_default();
    let is_over = matches!(known.phase.as_deref(), Some("Succeeded" | "Failed"));
    // One that does not start again has the phase that it has until its task has looked at it.
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if is_over || policy.is_some_and(|policy| policy != "Always") {
        return None;
    }
    let mut state = PodState::new(pod, host_ip);
    state.pod_ip = known.pod_ip.as_deref().and_then(|address| address.parse().ok());
    difference(&known, &status(pod, &state))
}

/// The pod as it was last seen. The answer to a report comes before the news of it: what was reported a moment ago would
/// look as if it still had to be.
fn newest(told: Arc<Pod>, answered: Option<&Arc<Pod>>) -> Arc<Pod> {
    let revision = |pod: &Pod| pod.metadata.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
    answered.filter(|answered| revision(answered) > revision(&told)).cloned().unwrap_or(told)
}

/// The members of the status that have to change, as a strategic merge patch.
fn difference(known: &PodStatus, wanted: &PodStatus) -> Option<Value> {
    let mut change = serde_json::Map::new();
    let (Ok(Value::Object(before)), Ok(Value::Object(after))) =
        (serde_json::to_value(known), serde_json::to_value(wanted))
    else {
        return None;
    };
    for name in ["phase", "hostIP", "podIP", "startTime", "observedGeneration", "reason", "message"] {
        let after = after.get(name);
        if before.get(name) != after {
            change.insert(name.to_owned(), after.cloned().unwrap_or(Value::Null));
        }
    }
    for name in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        if let Some(after) = after.get(name)
            && before.get(name).map(comparable) != Some(comparable(after))
        {
            change.insert(name.to_owned(), after.clone());
        }
    }
    for name in ["hostIPs", "podIPs"] {
        if let Some(after) = after.get(name)
            && before.get(name) != Some(after)
        {
            // Otherwise the addresses of an earlier life would be kept beside the new ones.
            let mut list = after.as_array().cloned().unwrap_or_default();
            list.push(json!({"$patch": "replace"}));
            change.insert(name.to_owned(), Value::Array(list));
        }
    }
    let conditions: Vec<Value> =
        wanted.conditions.iter().flatten().filter_map(|wanted| changed(known, wanted)).collect();
    if !conditions.is_empty() {
        change.insert("conditions".to_owned(), Value::Array(conditions));
    }
    (!change.is_empty()).then_some(Value::Object(change))
}

/// A condition that has to change, in full.
fn changed(known: &PodStatus, wanted: &PodCondition) -> Option<Value> {
    let known = known.conditions.iter().flatten().find(|known| known.type_ == wanted.type_);
    if known.is_some_and(|known| same(known, wanted)) {
        return None;
    }
    let mut change = serde_json::to_value(wanted).ok()?;
    for (member, before, now) in [
        ("reason", known.and_then(|known| known.reason.as_ref()), &wanted.reason),
        ("message", known.and_then(|known| known.message.as_ref()), &wanted.message),
    ] {
        if before.is_some() && now.is_none() {
            // What is not mentioned would stay.
            change[member] = Value::Null;
        }
    }
    Some(change)
}

fn same(known: &PodCondition, wanted: &PodCondition) -> bool {
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    known.status == wanted.status
        && filled(&known.reason) == filled(&wanted.reason)
        && filled(&known.message) == filled(&wanted.message)
        && known.observed_generation == wanted.observed_generation
}

/// Container statuses without what the API server adds on its own.
fn comparable(statuses: &Value) -> Value {
    let mut statuses = statuses.clone();
    for status in statuses.as_array_mut().into_iter().flatten() {
        if let Some(status) = status.as_object_mut() {
            status.retain(|name, value| {
                let known = matches!(
                    name.as_str(),
                    "name"
                        | "image"
                        | "imageID"
                        | "containerID"
                        | "ready"
                        | "started"
                        | "restartCount"
                        | "state"
                        | "lastState"
                );
                let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                known && !empty
            });
        }
    }
    statuses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(value: Value) -> PodStatus {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_what_changed_is_sent() {
        let known = status(json!({"phase": "Pending", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
            "qosClass": "BestEffort", "conditions": [
                {"type": "Ready", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z", "reason": "Why"},
                {"type": "Foreign", "status": "True"}],
            "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "lastState": {}, "state": {"waiting": {"reason": "ContainerCreating"}}, "volumeMounts": []}]}));
        let mut wanted = known.clone();
        wanted.conditions.as_mut().unwrap().pop();
        wanted.container_statuses.as_mut().unwrap()[0].volume_mounts = None;
        assert_eq!(difference(&known, &wanted), None, "nothing of ours changed");
        wanted.phase = Some("Running".into());
        wanted.conditions.as_mut().unwrap()[0].status = "True".into();
        wanted.conditions.as_mut().unwrap()[0].reason = None;
        wanted.pod_ips = serde_json::from_value(json!([{"ip": "10.0.0.2"}])).unwrap();
        let change = difference(&known, &wanted).unwrap();
        assert_eq!(
            change,
            json!({"phase": "Running", "podIPs": [{"ip": "10.0.0.2"}, {"$patch": "replace"}], "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z", "reason": null}]}),
            "a reason that is over is taken back"
        );
    }

    #[test]
    fn what_a_killed_node_has_left_as_it_was_is_over() {
        let host = "10.244.0.1".parse().unwrap();
        let pod = |policy: &str, phase: &str, state: Value| -> Pod {
            let condition = |type_: &str| json!({"type": type_, "status": "True"});
            let conditions: Vec<Value> =
                ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
                    .map(condition)
                    .into();
            serde_json::from_value(json!({"metadata": {"name": "p"},
                "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]},
                "status": {"phase": phase, "podIP": "10.244.0.9", "podIPs": [{"ip": "10.244.0.9"}],
                    "conditions": conditions, "containerStatuses": [{"name": "c", "image": "i", "imageID": "",
                        "ready": true, "restartCount": 0, "state": state}]}}))
            .unwrap()
        };
        let change = ended(&pod("Always", "Running", json!({"running": {}})), host).unwrap();
        let statuses = |change: &Value| change["containerStatuses"][0].clone();
        assert_eq!((&statuses(&change)["ready"], change.get("podIP")), (&json!(false), None), "{change:#}");
        let told = change["conditions"].as_array().unwrap().iter().map(|condition| {
            (condition["type"].as_str().unwrap().to_owned(), condition["status"].as_str().unwrap().to_owned())
        });
        let no = |type_: &str| (type_.to_owned(), "False".to_owned());
        assert_eq!(told.collect::<Vec<_>>(), [no("Ready"), no("ContainersReady")]);
        // A failure of then may be none of now.
        let waiting = json!({"waiting": {"reason": "ImagePullBackOff"}});
        let change = ended(&pod("Always", "Pending", waiting), host).unwrap();
        assert_eq!(statuses(&change)["state"]["waiting"]["reason"], "ContainerCreating", "{change:#}");
        for (policy, phase) in [("Never", "Running"), ("OnFailure", "Running"), ("Always", "Failed")] {
            assert_eq!(ended(&pod(policy, phase, json!({"running": {}})), host), None, "{policy} {phase}");
        }
    }
}
