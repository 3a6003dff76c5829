//! The status of a pod, computed from its specification and the states of its containers.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::context::as_container;
use super::state::{ContainerState, INITIALIZING, Phase, whole};

/// Everything the node knows about a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodState {
    pub(crate) init: Vec<ContainerState>,
    pub(crate) containers: Vec<ContainerState>,
    /// Those that somebody has added to look around. They decide nothing.
    pub(crate) ephemeral: Vec<ContainerState>,
    pub(crate) pod_ip: Option<IpAddr>,
    pub(crate) host_ip: IpAddr,
    pub(crate) started: Timestamp,
    /// Why the pod as a whole has failed, whatever its containers say.
    pub(crate) failure: Option<(String, String)>,
}

impl PodState {
    pub(crate) fn new(pod: &Pod, host_ip: IpAddr) -> Self {
        let known = pod.status.clone().unwrap_or_default();
        let spec = pod.spec.clone().unwrap_or_default();
        let states = |containers: &[Container], known: Option<Vec<_>>, init: bool| -> Vec<ContainerState> {
            let known: Vec<k8s_openapi::api::core::v1::ContainerStatus> = known.unwrap_or_default();
            let state = |container: &Container| {
                let before = known.iter().find(|status| status.name == container.name);
                ContainerState::new(&container.name, container.image.as_deref().unwrap_or_default(), init, before)
            };
            containers.iter().map(state).collect()
        };
        let ephemeral: Vec<Container> = spec.ephemeral_containers.iter().flatten().map(as_container).collect();
        let waits = spec.init_containers.as_ref().is_some_and(|init| !init.is_empty());
        let mut init = states(spec.init_containers.as_deref().unwrap_or_default(), known.init_container_statuses, true);
        // Whatever they did in an earlier life, they do it again: what waits for them must not take that for this one.
        init.iter_mut().filter(|state| state.ended().is_some()).for_each(|state| state.wait(INITIALIZING, None));
        Self {
            init,
            containers: states(&spec.containers, known.container_statuses, waits),
            ephemeral: states(&ephemeral, known.ephemeral_container_statuses, false),
            pod_ip: None,
            host_ip,
            started: known.start_time.map_or_else(Timestamp::now, |time| time.0),
            failure: None,
        }
    }

    /// A container that was added to the pod. One that is known already stays as it is.
    pub(crate) fn add_ephemeral(&mut self, name: &str, image: &str) {
        if self.container(name).is_none() {
            self.ephemeral.push(ContainerState::new(name, image, false, None));
        }
    }

    pub(crate) fn container_mut(&mut self, name: &str) -> Option<&mut ContainerState> {
        let all = self.init.iter_mut().chain(&mut self.containers).chain(&mut self.ephemeral);
        all.into_iter().find(|state| state.name == name)
    }

    pub(crate) fn container(&self, name: &str) -> Option<&ContainerState> {
        self.init.iter().chain(&self.containers).chain(&self.ephemeral).find(|state| state.name == name)
    }
}

/// Whether an init container stays beside the others instead of coming before them.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The status to report. Transition times are kept where nothing changed, and conditions of others are left alone.
pub(crate) fn status(pod: &Pod, state: &PodState) -> PodStatus {
    let spec = pod.spec.clone().unwrap_or_default();
    let known = pod.status.clone().unwrap_or_default();
    let phase = phase(&spec, state);
    let conditions = conditions(pod, &spec, state, phase);
    let address = state.pod_ip.map(|address| address.to_string());
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions),
        observed_generation: pod.metadata.generation,
        host_ip: Some(state.host_ip.to_string()),
        host_ips: Some(vec![HostIP { ip: state.host_ip.to_string() }]),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        start_time: Some(whole(state.started)),
        init_container_statuses: (!state.init.is_empty())
            .then(|| state.init.iter().map(ContainerState::to_api).collect()),
        container_statuses: Some(state.containers.iter().map(ContainerState::to_api).collect()),
        ephemeral_container_statuses: (!state.ephemeral.is_empty())
            .then(|| state.ephemeral.iter().map(ContainerState::to_api).collect()),
        reason: state.failure.as_ref().map(|(reason, _)| reason.clone()),
        message: state.failure.as_ref().map(|(_, message)| message.clone()),
        qos_class: known.qos_class,
        ..PodStatus::default()
    }
}

/// Whether all containers that come before the others are done.
pub(crate) fn initialized(spec: &PodSpec, state: &PodState) -> bool {
    incomplete(spec, state).is_empty()
}

fn incomplete<'a>(spec: &PodSpec, state: &'a PodState) -> Vec<&'a str> {
    let sidecar =
        |name: &str| spec.init_containers.iter().flatten().any(|other| other.name == name && is_sidecar(other));
    let done = |container: &ContainerState| {
        if sidecar(&container.name) {
            container.started || container.ended().is_some()
        } else {
            container.ended().is_some_and(|end| end.code == 0)
        }
    };
    state.init.iter().filter(|container| !done(container)).map(|container| container.name.as_str()).collect()
}

fn phase(spec: &PodSpec, state: &PodState) -> &'static str {
    if state.failure.is_some() {
        return "Failed";
    }
    let policy = spec.restart_policy.as_deref().unwrap_or("Always");
    let begun = state.containers.iter().any(|container| container.is_running() || container.ended().is_some());
    if !initialized(spec, state) && !begun {
        let failed = state.init.iter().any(|container| container.ended().is_some_and(|end| end.code != 0));
        return if failed && policy == "Never" { "Failed" } else { "Pending" };
    }
    let (mut running, mut waiting, mut ended, mut succeeded) = (0, 0, 0, 0);
    for container in &state.containers {
        match &container.now {
            Phase::Running { .. } => running += 1,
            Phase::Ended(end) => {
                ended += 1;
                succeeded += i32::from(end.code == 0);
            }
            // It has run before and will again.
            Phase::Waiting { .. } if container.last.is_some() => ended += 1,
            Phase::Waiting { .. } => waiting += 1,
        }
    }
    match policy {
        _ if waiting > 0 => "Pending",
        _ if running > 0 => "Running",
        "Never" | "OnFailure" if ended == succeeded => "Succeeded",
        "Never" => "Failed",
        _ => "Running",
    }
}

fn conditions(pod: &Pod, spec: &PodSpec, state: &PodState, phase: &str) -> Vec<PodCondition> {
    let listed = |names: &[&str]| format!("[{}]", names.join(" "));
    let incomplete = incomplete(spec, state);
    let initialized = match phase {
        _ if incomplete.is_empty() => Outcome::yes(),
        "Succeeded" => Outcome { met: true, reason: Some("PodCompleted"), message: None },
        _ => {
            let message = format!("containers with incomplete status: {}", listed(&incomplete));
            Outcome::no("ContainersNotInitialized", message)
        }
    };
    let sidecars = state.init.iter().filter(|container| {
        spec.init_containers.iter().flatten().any(|other| other.name == container.name && is_sidecar(other))
    });
    let all = sidecars.chain(&state.containers);
    let unready: Vec<&str> =
        all.filter(|container| !container.ready).map(|container| container.name.as_str()).collect();
    let containers_ready = match phase {
        "Succeeded" => Outcome::no_reason("PodCompleted"),
        "Failed" => Outcome::no_reason("PodFailed"),
        _ if unready.is_empty() => Outcome::yes(),
        _ => Outcome::no("ContainersNotReady", format!("containers with unready status: {}", listed(&unready))),
    };
    let ready = if containers_ready.met { gates(pod, spec) } else { containers_ready.clone() };
    let sandbox = Outcome { met: state.pod_ip.is_some(), reason: None, message: None };
    [
        ("PodReadyToStartContainers", sandbox),
        ("Initialized", initialized),
        ("Ready", ready),
        ("ContainersReady", containers_ready),
        ("PodScheduled", Outcome::yes()),
    ]
    .into_iter()
    .map(|(type_, outcome)| outcome.condition(pod, type_))
    .collect()
}

fn gates(pod: &Pod, spec: &PodSpec) -> Outcome {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let met: Vec<&str> =
        conditions.filter(|condition| condition.status == "True").map(|condition| condition.type_.as_str()).collect();
    let gates = spec.readiness_gates.iter().flatten().map(|gate| gate.condition_type.as_str());
    let unmet: Vec<String> = gates
        .filter(|gate| !met.contains(gate))
        .map(|gate| format!("corresponding condition of pod readiness gate {gate:?} does not exist or is not True."))
        .collect();
    if unmet.is_empty() { Outcome::yes() } else { Outcome::no("ReadinessGatesNotReady", unmet.join(", ")) }
}

#[derive(Clone, Debug)]
struct Outcome {
    met: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Outcome {
    fn yes() -> Self {
        Self { met: true, reason: None, message: None }
    }

    fn no(reason: &'static str, message: String) -> Self {
        Self { met: false, reason: Some(reason), message: Some(message) }
    }

    fn no_reason(reason: &'static str) -> Self {
        Self { met: false, reason: Some(reason), message: None }
    }

    fn condition(self, pod: &Pod, type_: &str) -> PodCondition {
        let status = if self.met { "True" } else { "False" };
        let known = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let same = known.into_iter().find(|known| known.type_ == type_ && known.status == status);
        let since = same.and_then(|known| known.last_transition_time.clone());
        PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: self.reason.map(str::to_owned),
            message: self.message,
            last_transition_time: since.or_else(|| Some(Time(whole(Timestamp::now()).0))),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        }
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
