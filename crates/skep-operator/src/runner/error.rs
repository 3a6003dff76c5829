//! Why there is no server behind a proxy.

use std::time::Duration;

use crate::members::WrongType;

/// What went wrong on the way to the server.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The patch of the pod template is none.
    #[error("the patch of the pod template (--k8s-pod-patch, k8s_pod_template_patch) cannot be used: {0}")]
    Patch(String),
    /// A port that is to be published is none.
    #[error("publish: {0:?} is no port; write CONTAINER-PORT or HOST-PORT:CONTAINER-PORT")]
    Port(String),
    /// The name is taken.
    #[error("{kind} {name} belongs to {owner}; rename the MCPServer, or delete that {kind} if nobody needs it")]
    NotOurs { kind: String, name: String, owner: String },
    /// Others write the object all the time, or it does not go away.
    #[error("{kind} {name} could not be written for {} s: {cause}", waited.as_secs())]
    Busy { kind: String, name: String, waited: Duration, cause: String },
    /// The pods do not become ready.
    #[error("statefulset applied but failed to become ready: {0}")]
    NotReady(String),
    /// There is no pod whose streams could be had.
    #[error("cannot attach to a pod of StatefulSet {name}: {cause}")]
    NoStreams { name: String, cause: String },
    /// The API server refuses, or cannot be asked.
    #[error("{doing}: {}", words(.cause))]
    Api { doing: String, cause: Box<kube::Error> },
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl RunnerError {
    pub(super) fn api(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        move |cause| Self::Api { doing, cause: Box::new(cause) }
    }
}

impl From<WrongType> for RunnerError {
    fn from(error: WrongType) -> Self {
        Self::Patch(error.to_string())
    }
}

/// The server's own words; for a missing right, what to do as well.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!("{}; the proxy's service account needs the Role that the operator makes for it", status.message)
        }
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
