//! One run of a container: from its start to its end.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Container as Wish;
use k8s_openapi::jiff::Timestamp;
use tokio::time::{Instant, timeout};

use super::context::{Context, Live};
use super::drive::Role;
use super::hook;
use super::prepare::Prepared;
use super::probing;
use super::state::End;
use super::streams::Streams;
use crate::container::{Container, Exit, StartError};
use crate::log::{self, Log, LogLimits, LogQuery};

/// Even without any time left, a container is asked before it is killed.
const SHORTEST_GRACE: Duration = Duration::from_secs(2);
/// A kill cannot be refused, but the kernel may need its time.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// How much of its last words is kept.
const LAST_WORDS: u64 = 4_096;
const LAST_LINES: usize = 80;

/// Why a container did not come to run.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("{0}")]
    Start(#[from] StartError),
    #[error("cannot write its log: {0}")]
    Log(#[from] std::io::Error),
}

/// What ended a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) end: End,
    /// The pod is being stopped: nothing is started any more.
    pub(super) stopped: bool,
}

/// Starts the container and stays with it.
pub(super) async fn run(context: &Context, wish: &Wish, role: Role, prepared: &Prepared) -> Result<Outcome, RunError> {
    let name = wish.name.as_str();
    let started = Timestamp::now();
    let id = format!("skep://{}", uuid::Uuid::new_v4().simple());
    let restarts = context
        .board
        .borrow()
        .container(name)
        .map_or(0, |state| state.restarts + i32::from(state.last.is_some() || state.ended().is_some()));
    let path = log::path(&context.logs, name, restarts);
    let log = Arc::new(Log::create(&path, LogLimits::default())?);
    log::forget_older(&context.logs, name, restarts)?;
    let container = context.node.runtime.start(&prepared.spec, context.network.as_deref()).await;
    let mut container = container.inspect_err(|_| log.close())?;
    context.note("Created", format!("Container created: {name}"));
    let (streams, pumps) = Streams::start(&mut container, log);
    let pumps = tokio::spawn(pumps);
    let live = Live {
        container: Arc::new(container),
        streams,
        env: Arc::new(prepared.spec.env.clone()),
        stdin_once: wish.stdin_once == Some(true),
        network: context.network.clone(),
    };
    context.live.lock().insert(name.to_owned(), live.clone());
    context.update(name, |state| {
        state.image = wish.image.clone().unwrap_or_default();
        state.run(id.clone());
    });
    context.note("Started", format!("Container started: {name}"));
    let (exit, stopped) = stay(context, wish, role, &live).await;
    context.live.lock().remove(name);
    // What it printed last belongs to the log before anybody learns of its end.
    let _ = timeout(SHORTEST_GRACE, pumps).await;
    let message = last_words(wish, exit, &prepared.last_words, live.streams.log.path()).await;
    let end = End {
        id,
        code: exit.code,
        signal: exit.signal,
        reason: if exit.code == 0 { "Completed" } else { "Error" }.to_owned(),
        message,
        started: Some(started),
        finished: Timestamp::now(),
    };
    Ok(Outcome { end, stopped })
}

/// Waits for the end of the container, or brings it about.
async fn stay(context: &Context, wish: &Wish, role: Role, live: &Live) -> (Exit, bool) {
    let name = wish.name.as_str();
    let hook = wish.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
    if let Some(hook) = hook {
        let address = context.place().pod_ip.unwrap_or(context.node.place.host_ip);
        tokio::select! {
            outcome = hook::run(hook, wish, live, address, Duration::from_mins(10)) => if let Err(reason) = outcome {
                context.warn("FailedPostStartHook", format!("PostStartHook failed: {reason}"));
                context.note("Killing", format!("FailedPostStartHook: container {name} will be killed"));
                return (stop(context, wish, live, context.grace()).await, false);
            },
            exit = live.container.wait() => return (exit, false),
            order = context.stopped(role) => return (stop(context, wish, live, order.deadline).await, true),
        }
    }
    tokio::select! {
        exit = live.container.wait() => (exit, false),
        verdict = probing::watch(context, wish, live) => {
            let probe = verdict.probe;
            context.note("Killing", format!("Container {name} failed {probe} probe, will be restarted"));
            let own = verdict.grace.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
            let deadline = own.map_or_else(|| context.grace(), |grace| Instant::now() + grace);
            (stop(context, wish, live, deadline).await, false)
        }
        order = context.stopped(role) => {
            context.note("Killing", format!("Stopping container {name}"));
            (stop(context, wish, live, order.deadline).await, true)
        }
        () = image_changed(context, wish) => {
            context.note("Killing", format!("Container {name} definition changed, will be restarted"));
            (stop(context, wish, live, context.grace()).await, false)
        }
    }
}

/// Waits until another image is wanted than that of `wish`.
pub(super) async fn image_changed(context: &Context, wish: &Wish) {
    let mut pods = context.pod.clone();
    let changed = |pod: &Arc<k8s_openapi::api::core::v1::Pod>| {
        let now = pod.spec.as_ref().and_then(|spec| super::context::wish(spec, &wish.name));
        now.is_some_and(|now| now.image != wish.image)
    };
    if pods.wait_for(changed).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Ends a container: its hook, a request, and after the deadline by force. The deadline may be moved forward meanwhile: a
/// node that is stopped does not wait for as long as a pod may.
async fn stop(context: &Context, wish: &Wish, live: &Live, deadline: Instant) -> Exit {
    if let Some(hook) = wish.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
        let address = context.place().pod_ip.unwrap_or(context.node.place.host_ip);
        let left = deadline.saturating_duration_since(Instant::now()).max(SHORTEST_GRACE);
        let work = hook::run(hook, wish, live, address, left);
        tokio::select! {
            biased;
            outcome = work => if let Err(reason) = outcome {
                context.warn("FailedPreStopHook", format!("PreStopHook failed: {reason}"));
            },
            exit = live.container.wait() => return exit,
            () = context.time_is_up(deadline, SHORTEST_GRACE) => {}
        }
    }
    live.container.terminate();
    tokio::select! {
        biased;
        exit = live.container.wait() => exit,
        () = context.time_is_up(deadline, SHORTEST_GRACE) => kill(&live.container).await,
    }
}

async fn kill(container: &Container) -> Exit {
    container.kill();
    let gone = timeout(KILL_LIMIT, container.wait()).await;
    // A process that does not even react to a kill hangs in the kernel; it counts as killed.
    gone.unwrap_or(Exit { code: 137, signal: Some(9) })
}

/// What the container left as the reason of its end: in its file, or the end of its log.
async fn last_words(wish: &Wish, exit: Exit, path: &Path, log: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // A file that cannot be read holds no words.
        let _ = file.take(LAST_WORDS).read_to_end(&mut bytes);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.is_empty() {
        return Some(text);
    }
    let from_log = wish.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if !from_log || exit.code == 0 {
        return None;
    }
    let query = LogQuery { tail: Some(LAST_LINES), ..LogQuery::default() };
    let pieces: Vec<_> = log::read(log.to_owned(), query, None).collect().await;
    let text: Vec<u8> = pieces.into_iter().flatten().flatten().collect();
    let from = text.len().saturating_sub(2_048);
    Some(String::from_utf8_lossy(&text[from..]).into_owned()).filter(|text| !text.is_empty())
}
