//! Watching: the changes of a collection as a stream of events, one JSON document a line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::State;
use super::codec;
use super::exchange::Exchange;
use super::negotiate::Form;
use super::options::VersionMatch;
use super::read::{Selectors, load, revision, shown};
use super::representation;
use crate::status::{ApiError, FieldError};
use crate::store::{Changed, Event, Record, RevisionError, Watch, WatchEnd};

/// How long a watch lasts when the client does not say.
const DEFAULT_DURATION: Duration = Duration::from_mins(45);
/// How often a client that asked for bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// GET of a collection with `watch=true`.
pub fn watch(state: &State, exchange: Exchange) -> Result<Response<Body>, ApiError> {
    check_initial_events(&exchange)?;
    let selectors = Selectors::of(&exchange)?;
    let resource = exchange.resource.storage_name();
    let namespace = exchange.path.namespace.clone();
    let start = Start::of(&exchange)?;
    let (initial, watch) = match start {
        Start::Now => (None, state.store.watch(&resource, namespace.as_deref(), None)),
        Start::After(revision) => (None, state.store.watch(&resource, namespace.as_deref(), Some(revision))),
        Start::WithState => {
            let (page, watch) = state.store.watch_with_state(&resource, namespace.as_deref());
            (Some(page), Ok(watch))
        }
    };
    let watch = match watch {
        Ok(watch) => watch,
        // A watch that cannot begin where it was asked to is told in the stream, so that it looks like one that ended.
        Err(error) => return Ok(respond(Body::from(error_event(&unwatchable(&error))))),
    };
    let mut follower = Follower::new(exchange, selectors, watch);
    if let Some(page) = initial {
        for record in page.records {
            if follower.selectors.matches(&record) {
                follower.push("ADDED", &record, record.revision);
            }
        }
        if follower.exchange.options.send_initial_events == Some(true) {
            follower.push_bookmark(page.revision, true);
        }
    }
    Ok(stream_response(follower))
}

/// Where a watch begins.
enum Start {
    Now,
    After(u64),
    /// First every object that is there, as if it had just been created.
    WithState,
}

impl Start {
    fn of(exchange: &Exchange) -> Result<Self, ApiError> {
        let options = &exchange.options;
        if options.send_initial_events == Some(true) {
            return Ok(Self::WithState);
        }
        match options.resource_version.as_deref().map(revision).transpose()? {
            None if options.send_initial_events == Some(false) => Ok(Self::Now),
            None | Some(0) => Ok(Self::WithState),
            Some(revision) => Ok(Self::After(revision)),
        }
    }
}

fn check_initial_events(exchange: &Exchange) -> Result<(), ApiError> {
    let options = &exchange.options;
    let mut errors = Vec::new();
    match (options.send_initial_events, options.resource_version_match) {
        (Some(_), None | Some(VersionMatch::Exact)) => errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )),
        (None, Some(_)) => errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        _ => {}
    }
    if errors.is_empty() {
        return Ok(());
    }
    let kind = crate::status::ResourceName::new("meta.k8s.io", "ListOptions");
    Err(ApiError::invalid(&kind, "", &errors))
}

fn unwatchable(error: &RevisionError) -> ApiError {
    ApiError::expired(error.to_string())
}

fn error_event(error: &ApiError) -> Bytes {
    line(&json!({ "type": "ERROR", "object": error.status() }))
}

fn line(event: &Value) -> Bytes {
    format!("{event}\n").into()
}

fn respond(body: Body) -> Response<Body> {
    Response::builder().status(StatusCode::OK).header(CONTENT_TYPE, "application/json").body(body).unwrap_or_default()
}

fn stream_response(follower: Follower) -> Response<Body> {
    let lines = stream::unfold(follower, |mut follower| async move {
        let line = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(line), follower))
    });
    respond(Body::from_stream(lines))
}

/// A watch with one client at its end. It holds at most the events that were there when it began and one more.
struct Follower {
    exchange: Exchange,
    api_version: String,
    selectors: Selectors,
    watch: Watch,
    /// Written and not yet sent.
    waiting: VecDeque<Bytes>,
    ends: Instant,
    next_bookmark: Instant,
    ended: bool,
    rows_sent: bool,
}

impl Follower {
    fn new(exchange: Exchange, selectors: Selectors, watch: Watch) -> Self {
        let now = Instant::now();
        let duration = exchange.options.timeout_seconds.map_or(DEFAULT_DURATION, Duration::from_secs);
        let api_version = exchange.api_version();
        Self {
            exchange,
            api_version,
            selectors,
            watch,
            waiting: VecDeque::new(),
            ends: now + duration,
            next_bookmark: now + BOOKMARK_INTERVAL,
            ended: false,
            rows_sent: false,
        }
    }

    /// The next line, or none at the end of the watch.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            tokio::select! {
                event = self.watch.next() => match event {
                    Ok(event) => self.take(&event),
                    Err(WatchEnd::Closed) => return None,
                    Err(lagged @ WatchEnd::Lagged { .. }) => {
                        self.ended = true;
                        self.waiting.push_back(error_event(&ApiError::expired(lagged.to_string())));
                    }
                },
                () = tokio::time::sleep_until(self.ends) => return None,
                () = tokio::time::sleep_until(self.next_bookmark), if self.exchange.options.allow_bookmarks => {
                    self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                    if let Ok(revision) = self.watch.progress() {
                        self.push_bookmark(revision, false);
                    }
                }
            }
        }
    }

    /// An object that a change brings into the selection is new to the client; one that leaves it is gone.
    fn take(&mut self, event: &Event) {
        let was = event.before().is_some_and(|before| self.selectors.matches(before));
        let is = event.after().is_some_and(|after| self.selectors.matches(after));
        match (&event.change, was, is) {
            (Changed::Updated { after, .. }, true, true) => self.push("MODIFIED", &after.clone(), event.revision),
            (Changed::Deleted { before } | Changed::Updated { before, .. }, true, _) => {
                self.push("DELETED", &before.clone(), event.revision);
            }
            (Changed::Created { after } | Changed::Updated { after, .. }, false, true) => {
                self.push("ADDED", &after.clone(), event.revision);
            }
            _ => {}
        }
    }

    fn push(&mut self, type_: &str, record: &Arc<Record>, revision: u64) {
        let mut line = format!("{{\"type\":\"{type_}\",\"object\":").into_bytes();
        match self.exchange.answer.form {
            Form::Object if !self.exchange.resource.is_second_face_of_events() => {
                codec::serve(record, revision, shown(&self.api_version, &self.exchange), &mut line);
            }
            form => match self.represented(form, record) {
                Ok(document) => line.extend_from_slice(document.to_string().as_bytes()),
                // A stored object that cannot be read is the server's own mistake; the client keeps its stream.
                Err(error) => line.extend_from_slice(error.status().to_string().as_bytes()),
            },
        }
        line.extend_from_slice(b"}\n");
        self.waiting.push_back(line.into());
    }

    fn represented(&mut self, form: Form, record: &Record) -> Result<Value, ApiError> {
        let object = load(&self.exchange, record)?;
        if form == Form::Table {
            let with_columns = !std::mem::replace(&mut self.rows_sent, true);
            let mut table = representation::table(&self.exchange, std::slice::from_ref(&object), with_columns)?;
            table["metadata"] = json!({ "resourceVersion": record.revision.to_string() });
            return Ok(table);
        }
        Ok(if form == Form::Object { object } else { representation::partial(&object) })
    }

    fn push_bookmark(&mut self, revision: u64, ends_initial_events: bool) {
        let kind = &self.exchange.resource.kind;
        let object = representation::bookmark(&self.api_version, kind, revision, ends_initial_events);
        self.waiting.push_back(line(&json!({ "type": "BOOKMARK", "object": object })));
    }
}
