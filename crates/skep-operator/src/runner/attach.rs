//! The standard streams of a server in a pod.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{AttachParams, AttachedProcess, ListParams};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use skep_api::names::{labels, mcp_server};
use tokio::io::{AsyncRead, AsyncWrite};

use super::RunnerError;

/// How long there may be no pod to attach to.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long to wait after the first failure; twice as long after each one that follows.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How long the API server may take to open the streams.
const OPENING: Duration = Duration::from_secs(15);
/// Bytes on their way.
const BUFFER: usize = 256 * 1024;

/// The way to the streams of the pods of one StatefulSet.
#[derive(Debug, Clone)]
pub struct Attachment {
    pods: Api<Pod>,
    name: String,
    own: Option<OwnPod>,
}

/// A pod that is for one visitor after the other.
#[derive(Debug, Clone)]
struct OwnPod {
    name: String,
    /// The container that was visited last. It ends when it is left.
    visited: Arc<Mutex<Option<String>>>,
}

/// Streams that are open. They end with the container, or with the connection to it.
pub struct Attached {
    /// The pod that they belong to.
    pub pod: String,
    /// What the server reads.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// What the server writes.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Has to be kept for as long as the streams are used.
    pub process: AttachedProcess,
}

impl fmt::Debug for Attached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Attached").field("pod", &self.pod).finish_non_exhaustive()
    }
}

impl Attachment {
    pub(super) fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self { pods: Api::namespaced(client, namespace), name: name.to_owned(), own: None }
    }

    /// The way to the streams of one pod, whose process is another one each time.
    #[must_use]
    pub fn to_pod(&self, ordinal: i32) -> Self {
        let name = format!("{}-{ordinal}", self.name);
        Self { own: Some(OwnPod { name, visited: Arc::default() }), ..self.clone() }
    }

    /// Opens the streams of a pod that runs; waits for one for a while.
    pub async fn open(&self) -> Result<Attached, RunnerError> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let cause = match self.try_open().await {
                Ok(attached) => return Ok(attached),
                Err(cause) => cause,
            };
            if begun.elapsed() > PATIENCE {
                return Err(RunnerError::NoStreams { name: self.name.clone(), cause });
            }
            tracing::debug!(cause, "not attached yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn try_open(&self) -> Result<Attached, String> {
        let selector = labels::selector_text(&labels::backend_selector(&self.name));
        let listed = self.pods.list(&ListParams::default().labels(&selector)).await;
        let pods = listed.map_err(|error| error.to_string())?.items;
        let running =
            pods.iter().filter_map(|pod| Some((pod, running(pod)?))).filter(|(pod, id)| self.may_visit(pod, id));
        let (pod, container) = running
            .max_by_key(|(pod, _)| is_ready(pod))
            .ok_or_else(|| format!("none of its {} pods runs a process to attach to", pods.len()))?;
        let pod = pod.name_any();
        let params = AttachParams {
            container: Some(mcp_server::BACKEND_CONTAINER.to_owned()),
            stdin: true,
            stdout: true,
            // It is in the log of the pod; between the messages it would only be in the way.
            stderr: false,
            tty: false,
            max_stdin_buf_size: Some(BUFFER),
            max_stdout_buf_size: Some(BUFFER),
            max_stderr_buf_size: None,
        };
        let opened = tokio::time::timeout(OPENING, self.pods.attach(&pod, &params)).await;
        let mut process = match opened {
            Ok(Ok(process)) => process,
            Ok(Err(error)) => return Err(format!("pod {pod}: {error}")),
            Err(_) => return Err(format!("pod {pod}: no answer for {} s", OPENING.as_secs())),
        };
        match (process.stdin(), process.stdout()) {
            (Some(input), Some(output)) => {
                if let Some(own) = &self.own {
                    *own.visited.lock() = Some(container.to_owned());
                }
                Ok(Attached { pod, input: Box::new(input), output: Box::new(output), process })
            }
            _ => Err(format!("pod {pod} has no streams")),
        }
    }

    fn may_visit(&self, pod: &Pod, container: &str) -> bool {
        self.own.as_ref().is_none_or(|own| {
            pod.metadata.name.as_ref() == Some(&own.name) && own.visited.lock().as_deref() != Some(container)
        })
    }
}

/// The id of the container that runs the server, in a pod that is to stay.
fn running(pod: &Pod) -> Option<&str> {
    let mut containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let own = containers.find(|container| container.name == mcp_server::BACKEND_CONTAINER)?;
    let runs = own.state.as_ref().is_some_and(|state| state.running.is_some());
    (runs && pod.metadata.deletion_timestamp.is_none()).then(|| own.container_id.as_deref().unwrap_or_default())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
