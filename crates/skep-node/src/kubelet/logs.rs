//! What a container has printed.

use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use serde::Deserialize;
use tokio::sync::watch;

use super::Kubelet;
use super::refusal::Refusal;
use crate::log::{self, LogQuery, Progress};
use crate::node::Pods;
use crate::pod::wish;

/// The query of a request, in the names of the API.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Asked {
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    since_seconds: Option<i64>,
    since_time: Option<String>,
}

pub(super) async fn get(
    State(kubelet): State<Kubelet>,
    Path((namespace, name, container)): Path<(String, String, String)>,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(asked) = asked.map_err(|_| unreadable())?;
    let query = asked.query(Timestamp::now())?;
    let not_there = || Refusal::not_found(format!("pod {name:?} does not exist"));
    let pod = kubelet.pods.find(&namespace, &name).ok_or_else(not_there)?;
    if pod.spec.as_ref().and_then(|spec| wish(spec, &container)).is_none() {
        return Err(Refusal::not_found(format!("container {container:?} not found in pod {name:?}")));
    }
    let (path, live) = choose(&kubelet.pods, &pod, &container, asked.previous).map_err(Refusal::bad_request)?;
    let body = Body::from_stream(log::read(path, query, live.filter(|_| asked.follow)));
    let response = http::Response::builder().status(StatusCode::OK).header(CONTENT_TYPE, "text/plain");
    response.body(body).map_err(|error| Refusal::failed(error.to_string()))
}

impl Asked {
    fn query(&self, now: Timestamp) -> Result<LogQuery, Refusal> {
        let invalid = || Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, r#"{"message": "Invalid request."}"#);
        let since = match (self.since_seconds, &self.since_time) {
            (None, None) => None,
            (None, Some(time)) => Some(time.parse().map_err(|_| unreadable())?),
            (Some(seconds @ 1..), None) => {
                // Longer ago than there are times is from the beginning.
                let ago = Duration::from_secs(seconds.unsigned_abs());
                Some(now.checked_sub(ago).unwrap_or(Timestamp::MIN))
            }
            (Some(_), _) => return Err(invalid()),
        };
        let tail = self.tail_lines.map(usize::try_from).transpose().map_err(|_| invalid())?;
        let limit = self.limit_bytes.map(u64::try_from).transpose().map_err(|_| invalid())?;
        if limit == Some(0) {
            return Err(invalid());
        }
        Ok(LogQuery { tail, since, limit, timestamps: self.timestamps })
    }
}

fn unreadable() -> Refusal {
    Refusal::bad_request(r#"{"message": "Unable to decode query."}"#)
}

type Chosen = (PathBuf, Option<watch::Receiver<Progress>>);

/// The log that is meant: that of the container as it runs, or of the last run that there was.
fn choose(pods: &Pods, pod: &Pod, container: &str, previous: bool) -> Result<Chosen, String> {
    if !previous && let Some(live) = pods.live(pod, container) {
        let log = &live.streams.log;
        return Ok((log.path().to_owned(), Some(log.follow())));
    }
    let name = pod.name_any();
    let run = run(status(pod, container), container, &name, previous)?;
    let gone = || format!("unable to retrieve container logs for {container:?} in pod {name:?}: the log is gone");
    Ok((pods.log(pod, container, run).ok_or_else(gone)?, None))
}

fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let lasting = status.container_statuses.iter().chain(&status.init_container_statuses);
    let all = lasting.chain(&status.ephemeral_container_statuses).flatten();
    all.into_iter().find(|status| status.name == container)
}

/// The number of the run that has ended and is meant.
fn run(status: Option<&ContainerStatus>, container: &str, pod: &str, previous: bool) -> Result<i32, String> {
    let title = format!("container {container:?} in pod {pod:?}");
    let Some(status) = status else { return Err(format!("{title} is not available")) };
    let state = status.state.as_ref();
    let waiting = state.and_then(|state| state.waiting.as_ref());
    let has_run_before = status.last_state.as_ref().is_some_and(|last| last.terminated.is_some());
    // While it waits, nothing has run since the last time.
    let before = if waiting.is_some() { status.restart_count } else { status.restart_count - 1 };
    match waiting {
        _ if previous && has_run_before => Ok(before),
        _ if previous => Err(format!("previous terminated {title} not found")),
        None if state.is_some() => Ok(status.restart_count),
        Some(_) if has_run_before => Ok(before),
        Some(waiting) => {
            let reason = match waiting.reason.as_deref().unwrap_or_default() {
                "ErrImagePull" => "image can't be pulled",
                "ImagePullBackOff" => "trying and failing to pull image",
                other => other,
            };
            Err(format!("{title} is waiting to start: {reason}"))
        }
        None => Err(format!("{title} is waiting to start - no logs yet")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run_of(status: serde_json::Value, previous: bool) -> Result<i32, String> {
        let status: ContainerStatus = serde_json::from_value(status).unwrap();
        run(Some(&status), "c", "p", previous)
    }

    #[test]
    fn the_run_that_is_meant() {
        let ended = json!({"terminated": {"exitCode": 1}});
        let crashing =
            json!({"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended});
        assert_eq!(run_of(crashing.clone(), false), Ok(3));
        assert_eq!(run_of(crashing, true), Ok(3));
        let over = json!({"restartCount": 3, "state": ended, "lastState": ended});
        assert_eq!(run_of(over.clone(), false), Ok(3));
        assert_eq!(run_of(over, true), Ok(2));
        let first = json!({"restartCount": 0, "state": {"running": {}}});
        let missing = "previous terminated container \"c\" in pod \"p\" not found";
        assert_eq!(run_of(first, true), Err(missing.to_owned()));
    }

    #[test]
    fn containers_that_never_ran_say_why() {
        let waits = |reason: &str| run_of(json!({"restartCount": 0, "state": {"waiting": {"reason": reason}}}), false);
        let text = |why: &str| Err(format!("container \"c\" in pod \"p\" is waiting to start: {why}"));
        assert_eq!(waits("ContainerCreating"), text("ContainerCreating"));
        assert_eq!(waits("ErrImagePull"), text("image can't be pulled"));
        assert_eq!(waits("ImagePullBackOff"), text("trying and failing to pull image"));
        assert_eq!(run(None, "c", "p", false), Err("container \"c\" in pod \"p\" is not available".to_owned()));
    }

    #[test]
    fn queries_that_make_no_sense_are_refused() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let tail = Asked { tail_lines: Some(0), since_seconds: Some(60), ..Asked::default() }.query(now).unwrap();
        assert_eq!((tail.tail, tail.since), (Some(0), Some("2026-01-02T03:03:05Z".parse().unwrap())));
        for asked in [
            Asked { tail_lines: Some(-1), ..Asked::default() },
            Asked { limit_bytes: Some(0), ..Asked::default() },
            Asked { since_seconds: Some(0), ..Asked::default() },
            Asked { since_seconds: Some(1), since_time: Some("2026-01-02T03:04:05Z".into()), ..Asked::default() },
        ] {
            let refusal = asked.query(now).unwrap_err();
            assert_eq!(refusal.status, StatusCode::UNPROCESSABLE_ENTITY, "{asked:?}");
        }
    }
}
