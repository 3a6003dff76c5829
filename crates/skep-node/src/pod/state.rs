//! What is known about the containers of a pod, and the status that follows from it.

use k8s_openapi::api::core::v1::{
    ContainerState as ApiState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// Why a container waits that does not wait for anything of its own.
pub(super) const INITIALIZING: &str = "PodInitializing";

/// One container: what it does now, what it did last, and what its probes say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ContainerState {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) now: Phase,
    pub(crate) last: Option<End>,
    pub(crate) restarts: i32,
    /// The startup probe has succeeded, or there is none and the container runs.
    pub(crate) started: bool,
    pub(crate) ready: bool,
}

/// What a container does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    Waiting { reason: String, message: Option<String> },
    Running { id: String, since: Timestamp },
    Ended(End),
}

/// How a run of a container ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) id: String,
    pub(crate) code: i32,
    pub(crate) signal: Option<i32>,
    pub(crate) reason: String,
    pub(crate) message: Option<String>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Timestamp,
}

impl ContainerState {
    /// A container that has not been looked at yet. `before` is what the API server knows from an earlier life of this
    /// node: a container that ran then does not run any more.
    pub(crate) fn new(name: &str, image: &str, init: bool, before: Option<&ContainerStatus>) -> Self {
        let reason = if init { INITIALIZING } else { "ContainerCreating" };
        let mut state = Self {
            name: name.to_owned(),
            image: image.to_owned(),
            now: Phase::Waiting { reason: reason.to_owned(), message: None },
            last: None,
            restarts: 0,
            started: false,
            ready: false,
        };
        let Some(before) = before else { return state };
        state.restarts = before.restart_count;
        state.last = before.last_state.as_ref().and_then(|last| last.terminated.as_ref()).map(End::from_api);
        let api = before.state.as_ref();
        if let Some(ended) = api.and_then(|state| state.terminated.as_ref()) {
            state.now = Phase::Ended(End::from_api(ended));
        } else if let Some(running) = api.and_then(|state| state.running.as_ref()) {
            state.now = Phase::Ended(End {
                id: before.container_id.clone().unwrap_or_default(),
                code: 137,
                signal: Some(9),
                reason: "ContainerStatusUnknown".to_owned(),
                message: Some("the node was stopped while the container ran".to_owned()),
                started: running.started_at.as_ref().map(|time| time.0),
                finished: Timestamp::now(),
            });
        }
        state
    }

    pub(crate) fn wait(&mut self, reason: &str, message: Option<String>) {
        self.retire();
        self.now = Phase::Waiting { reason: reason.to_owned(), message };
        self.ready = false;
        self.started = false;
    }

    pub(crate) fn run(&mut self, id: String) {
        if self.last.is_some() || self.ended().is_some() {
            self.restarts = self.restarts.saturating_add(1);
        }
        self.retire();
        self.now = Phase::Running { id, since: Timestamp::now() };
    }

    pub(crate) fn end(&mut self, end: End) {
        self.now = Phase::Ended(end);
        self.ready = false;
        self.started = false;
    }

    pub(crate) fn ended(&self) -> Option<&End> {
        match &self.now {
            Phase::Ended(end) => Some(end),
            Phase::Waiting { .. } | Phase::Running { .. } => None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.now, Phase::Running { .. })
    }

    /// What it did becomes what it did last.
    fn retire(&mut self) {
        if let Phase::Ended(end) = &self.now {
            self.last = Some(end.clone());
        }
    }

    pub(crate) fn to_api(&self) -> ContainerStatus {
        let id = match &self.now {
            Phase::Running { id, .. } | Phase::Ended(End { id, .. }) => Some(id.clone()),
            Phase::Waiting { .. } => self.last.as_ref().map(|end| end.id.clone()),
        };
        let ran = matches!(self.now, Phase::Running { .. } | Phase::Ended(_)) || self.last.is_some();
        ContainerStatus {
            name: self.name.clone(),
            image: self.image.clone(),
            image_id: if ran { self.image.clone() } else { String::new() },
            container_id: id.filter(|id| !id.is_empty()),
            ready: self.ready,
            started: Some(self.started),
            restart_count: self.restarts,
            state: Some(match &self.now {
                Phase::Waiting { reason, message } => ApiState {
                    waiting: Some(ContainerStateWaiting { reason: Some(reason.clone()), message: message.clone() }),
                    ..ApiState::default()
                },
                Phase::Running { since, .. } => ApiState {
                    running: Some(ContainerStateRunning { started_at: Some(whole(*since)) }),
                    ..ApiState::default()
                },
                Phase::Ended(end) => ApiState { terminated: Some(end.to_api()), ..ApiState::default() },
            }),
            last_state: Some(ApiState { terminated: self.last.as_ref().map(End::to_api), ..ApiState::default() }),
            ..ContainerStatus::default()
        }
    }
}

impl End {
    fn from_api(ended: &ContainerStateTerminated) -> Self {
        Self {
            id: ended.container_id.clone().unwrap_or_default(),
            code: ended.exit_code,
            signal: ended.signal,
            reason: ended.reason.clone().unwrap_or_default(),
            message: ended.message.clone(),
            started: ended.started_at.as_ref().map(|time| time.0),
            finished: ended.finished_at.as_ref().map_or_else(Timestamp::now, |time| time.0),
        }
    }

    fn to_api(&self) -> ContainerStateTerminated {
        ContainerStateTerminated {
            container_id: Some(self.id.clone()).filter(|id| !id.is_empty()),
            exit_code: self.code,
            signal: self.signal,
            reason: Some(self.reason.clone()),
            message: self.message.clone(),
            started_at: self.started.map(whole),
            finished_at: Some(whole(self.finished)),
        }
    }
}

/// The API keeps whole seconds; anything finer would look like a change.
pub(crate) fn whole(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}
