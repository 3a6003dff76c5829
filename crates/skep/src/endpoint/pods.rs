//! How the pods behind an endpoint do.

use k8s_openapi::api::core::v1::Pod;
use skep_api::conditions::types::READY;

/// The life of an endpoint that does not get better by itself.
pub(super) const FAILED: &str = "Failed";
/// The life of one that may.
pub(super) const PENDING: &str = "Pending";
/// Waiting for these is in vain unless somebody does something.
const FAILURES: [&str; 8] = [
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

/// How pods do together, in one word and in a sentence.
pub(super) fn life(pods: &[&Pod], replicas: Option<i32>) -> (&'static str, Option<String>) {
    if replicas == Some(0) {
        return ("Stopped", None);
    }
    if pods.iter().any(|pod| is_ready(pod)) {
        return (READY, None);
    }
    let complaints: Vec<(String, Option<String>)> = pods.iter().filter_map(|pod| complaint(pod)).collect();
    let failed = complaints.iter().find(|(reason, _)| FAILURES.contains(&reason.as_str()));
    let told = failed.or(complaints.first()).map(|(reason, message)| match message {
        Some(message) => format!("{reason}: {message}"),
        None => reason.clone(),
    });
    (if failed.is_some() { FAILED } else { PENDING }, told)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_none()
        && conditions.into_iter().any(|condition| condition.type_ == READY && condition.status == "True")
}

/// What keeps a pod from being ready: the reason and its message.
fn complaint(pod: &Pod) -> Option<(String, Option<String>)> {
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let waiting = containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref());
    let waiting = waiting.filter_map(|waiting| Some((waiting.reason.clone()?, waiting.message.clone())));
    let conditions = status.conditions.iter().flatten().filter(|condition| condition.status != "True");
    let unmet = conditions.filter_map(|condition| Some((condition.reason.clone()?, condition.message.clone())));
    waiting.chain(unmet).next()
}
