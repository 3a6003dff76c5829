//! The standard streams of a server in a pod.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{AttachParams, AttachedProcess, ListParams};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use skep_api::names::{labels, mcp_server};
use tokio::io::{AsyncRead, AsyncWrite};

use super::RunnerError;
use super::claims::{Claims, Container, Proxy};

/// How long to wait after the first failure; twice as long after each one that follows.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How long the API server may take to open the streams.
const OPENING: Duration = Duration::from_secs(15);
/// How long a process may take to end whose input is closed, before it is looked for another one.
const ENDING: Duration = Duration::from_secs(2);
/// Bytes on their way.
const BUFFER: usize = 256 * 1024;

/// The way to the streams of the pods of one StatefulSet.
#[derive(Debug, Clone)]
pub struct Attachment {
    pods: Api<Pod>,
    name: String,
    whose: Whose,
    patience: Duration,
}

/// Which containers may be visited.
#[derive(Debug, Clone)]
enum Whose {
    /// Any: all clients share one.
    Everybody,
    /// Those of one pod, one after the other, because each ends when somebody leaves it. Other proxies visit them, too.
    Pod { name: String, visited: Arc<Mutex<Option<String>>> },
    /// Those that nobody has visited, of the pods that are for sessions.
    OneSession { pods: Arc<[String]>, claims: Arc<Claims> },
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
    /// How long there may be no pod to attach to, if nobody says.
    pub const PATIENCE: Duration = Duration::from_secs(90);

    pub(super) fn new(client: Client, namespace: &str, name: &str) -> Self {
        let pods = Api::namespaced(client, namespace);
        Self { pods, name: name.to_owned(), whose: Whose::Everybody, patience: Self::PATIENCE }
    }

    /// Waits this long for a pod to attach to.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The way to the streams of one pod, whose process is another one each time.
    #[must_use]
    pub fn to_pod(&self, ordinal: i32) -> Self {
        Self { whose: Whose::Pod { name: self.pod(ordinal), visited: Arc::default() }, ..self.clone() }
    }

    /// The way to the streams of some pods, whose processes are for one session each, whichever proxy it has.
    #[must_use]
    pub fn for_sessions(&self, ordinals: Range<i32>, proxy: Proxy) -> Self {
        let namespace = self.pods.namespace().unwrap_or_default();
        let claims = Arc::new(Claims::new(self.pods.clone().into_client(), namespace, &self.name, proxy));
        let pods = ordinals.map(|ordinal| self.pod(ordinal)).collect();
        Self { whose: Whose::OneSession { pods, claims }, ..self.clone() }
    }

    fn pod(&self, ordinal: i32) -> String {
        format!("{}-{ordinal}", self.name)
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
            if begun.elapsed() > self.patience {
                return Err(RunnerError::NoStreams { name: self.name.clone(), cause });
            }
            tracing::debug!(cause, "not attached yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn try_open(&self) -> Result<Attached, String> {
        let selector = labels::selector_text(&labels::backend_selector(&self.name));
        let params = ListParams::default().labels(&selector);
        let pods = answered(self.pods.list(&params)).await?.items;
        let mut running: Vec<Container> = pods.iter().filter_map(running).collect();
        running.sort_by_key(|container| !container.is_ready);
        let none = || format!("none of its {} pods runs a process to attach to", pods.len());
        match &self.whose {
            Whose::Everybody => self.attach(&running.first().ok_or_else(none)?.pod).await,
            Whose::Pod { name, visited } => {
                let is_new = |container: &&Container| visited.lock().as_ref() != Some(&container.id);
                let container = running.iter().filter(|container| container.pod == *name).find(is_new);
                let container = container.ok_or_else(none)?;
                let attached = self.attach(&container.pod).await?;
                *visited.lock() = Some(container.id.clone());
                Ok(attached)
            }
            Whose::OneSession { pods, claims } => {
                running.retain(|container| pods.contains(&container.pod));
                self.visit_first(&running, claims).await
            }
        }
    }

    /// Opens the streams of a container that nobody has visited, and that nobody else will.
    async fn visit_first(&self, running: &[Container], claims: &Claims) -> Result<Attached, String> {
        let Some(mut claim) = claims.claim(running).await? else {
            for pod in claims.left_behind(running).await? {
                tracing::info!(pod, "ending a process that belongs to a proxy which is gone");
                self.end(&pod).await;
            }
            return Err(format!("each of the {} processes for sessions was taken by somebody", running.len()));
        };
        let pod = claim.container().pod.clone();
        let attached = self.attach(&pod).await?;
        claim.use_up();
        // A pod is what one attaches to. When its container was replaced since it was claimed, this is one that others may
        // claim.
        let now = answered(self.pods.get(&pod)).await?;
        let is_same = self::running(&now).is_some_and(|container| container.id == claim.container().id);
        if is_same { Ok(attached) } else { Err(format!("pod {pod} runs another process by now")) }
    }

    async fn attach(&self, pod: &str) -> Result<Attached, String> {
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
        let mut process =
            answered(self.pods.attach(pod, &params)).await.map_err(|problem| format!("pod {pod}: {problem}"))?;
        match (process.stdin(), process.stdout()) {
            (Some(input), Some(output)) => {
                Ok(Attached { pod: pod.to_owned(), input: Box::new(input), output: Box::new(output), process })
            }
            _ => Err(format!("pod {pod} has no streams")),
        }
    }

    /// Ends the process of a pod that ends when somebody leaves it. Nothing is said to it, and nothing is heard.
    async fn end(&self, pod: &str) {
        let params = AttachParams {
            container: Some(mcp_server::BACKEND_CONTAINER.to_owned()),
            stdin: true,
            stdout: false,
            stderr: false,
            ..AttachParams::default()
        };
        match answered(self.pods.attach(pod, &params)).await {
            // One that goes on without its input is met again, and told again.
            Ok(process) => drop(tokio::time::timeout(ENDING, process.join()).await),
            Err(problem) => tracing::debug!(pod, problem, "cannot end it yet"),
        }
    }
}

/// What the API server says, if it says something within some time.
pub(super) async fn answered<T>(asking: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    let told = tokio::time::timeout(OPENING, asking).await;
    told.map_err(|_| format!("no answer for {} s", OPENING.as_secs()))?.map_err(|error| error.to_string())
}

/// The container that runs the server, in a pod that is to stay.
fn running(pod: &Pod) -> Option<Container> {
    let mut containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let own = containers.find(|container| container.name == mcp_server::BACKEND_CONTAINER)?;
    let runs = own.state.as_ref().is_some_and(|state| state.running.is_some());
    (runs && pod.metadata.deletion_timestamp.is_none()).then(|| Container {
        pod: pod.name_any(),
        id: own.container_id.clone().unwrap_or_default(),
        is_ready: is_ready(pod),
    })
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
