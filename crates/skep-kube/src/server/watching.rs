//! Watching: the changes of a collection as a stream of events, one JSON document a line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::Response;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::State;
use super::codec;
use super::content;
use super::exchange::Exchange;
use super::metadata;
use super::negotiate::{Encoding, Form};
use super::read::{Selectors, check_not_too_large, is_shown_as_stored, load, revision, shown};
use super::representation;
use super::table;
use crate::go_text::wrapped_nanoseconds;
use crate::status::ApiError;
use crate::store::{Changed, Event, Page, Record, RevisionError, SHARED, Watch, WatchEnd};

/// How long a watch lasts when the client does not say.
const DEFAULT_DURATION: Duration = Duration::from_mins(45);
/// How often a client that asked for bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// The last bookmark comes so long before the watch ends that it is not lost with it.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// GET of a collection with `watch=true`, or of a path that begins with `watch`.
pub fn watch(state: &State, exchange: Exchange) -> Result<Response<Body>, ApiError> {
    if exchange.answer.encoding == Encoding::Yaml {
        return Err(representation::not_acceptable(
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch",
        ));
    }
    exchange.options.check_watch()?;
    representation::check_form(&exchange)?;
    let selectors = Selectors::of(&exchange)?;
    // A watch that cannot begin where it was asked to is told in the stream, so that it looks like one that ended.
    let (initial, watch) = match begin(state, &exchange, Start::of(&exchange)?) {
        Ok(begun) => begun,
        Err(error) => {
            let encoding = exchange.answer.encoding;
            return Ok(content::stream(encoding, Body::from(content::event(encoding, error_event(&error)))));
        }
    };
    Ok(stream_response(Follower::new(exchange, selectors, initial, watch)))
}

fn begin(state: &State, exchange: &Exchange, start: Start) -> Result<(Option<Page>, Watch), ApiError> {
    let resource = exchange.resource.storage_name();
    let namespace = exchange.path.namespace.as_deref();
    let from = match start {
        Start::WithState { not_older_than } => {
            check_not_too_large(state, not_older_than)?;
            let (page, watch) = state.store.watch_with_state(&resource, namespace);
            return Ok((Some(page), watch));
        }
        Start::Now => None,
        Start::After(revision) => Some(revision),
    };
    let oldest = exchange.resource.tenure.since();
    if let Some(requested) = from.filter(|requested| *requested < oldest) {
        return Err(too_old(requested, oldest));
    }
    match state.store.watch(&resource, namespace, from) {
        Ok(watch) => Ok((None, watch)),
        Err(RevisionError::Expired { requested, oldest }) => Err(too_old(requested, oldest)),
        Err(error @ RevisionError::Future { .. }) => Err(ApiError::internal(&error.to_string())),
    }
}

fn too_old(requested: u64, oldest: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {requested} ({oldest})"))
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy)]
enum Start {
    Now,
    After(u64),
    /// First every object that is there, as if it had just been created.
    WithState {
        not_older_than: Option<u64>,
    },
}

impl Start {
    fn of(exchange: &Exchange) -> Result<Self, ApiError> {
        let options = &exchange.options;
        let asked = options.resource_version.as_deref().map(revision).transpose()?;
        Ok(match (options.send_initial_events, asked) {
            (Some(true), not_older_than) => Self::WithState { not_older_than },
            (Some(false), None) => Self::Now,
            (_, None | Some(0)) => Self::WithState { not_older_than: None },
            (_, Some(revision)) => Self::After(revision),
        })
    }
}

fn error_event(error: &ApiError) -> Bytes {
    line(&json!({ "type": "ERROR", "object": error.status() }))
}

fn line(event: &Value) -> Bytes {
    format!("{event}\n").into()
}

fn stream_response(follower: Follower) -> Response<Body> {
    let encoding = follower.exchange.answer.encoding;
    let events = stream::unfold(follower, move |mut follower| async move {
        let line = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(content::event(encoding, line)), follower))
    });
    content::stream(encoding, Body::from_stream(events))
}

fn next_bookmark(now: Instant, ends: Instant) -> Instant {
    let regular = now + BOOKMARK_INTERVAL;
    ends.checked_sub(LAST_BOOKMARK).filter(|last| *last > now).map_or(regular, |last| last.min(regular))
}

/// How long a watch lasts. Nothing, and what comes to nothing, is up to the server; less than nothing is over at once.
fn duration(timeout_seconds: Option<i64>) -> Duration {
    match wrapped_nanoseconds(timeout_seconds.unwrap_or_default()) {
        0 => DEFAULT_DURATION,
        nanoseconds => Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default()),
    }
}

/// A watch with one client at its end. Of what was there when it began it holds what the store held anyway; what the
/// client gets is written when it is sent.
struct Follower {
    exchange: Exchange,
    api_version: String,
    selectors: Selectors,
    /// What was there when it began and has not been sent, and the revision at which it was there.
    initial: Option<(std::vec::IntoIter<Arc<Record>>, u64)>,
    watch: Watch,
    /// Written and not yet sent: a line, in one part or in several.
    waiting: VecDeque<Bytes>,
    ends: Instant,
    next_bookmark: Instant,
    ended: bool,
    rows_sent: bool,
}

impl Follower {
    fn new(exchange: Exchange, selectors: Selectors, initial: Option<Page>, watch: Watch) -> Self {
        let now = Instant::now();
        let duration = duration(exchange.options.timeout_seconds);
        let api_version = exchange.api_version();
        Self {
            exchange,
            api_version,
            selectors,
            initial: initial.map(|page| (page.records.into_iter(), page.revision)),
            watch,
            waiting: VecDeque::new(),
            ends: now + duration,
            next_bookmark: next_bookmark(now, now + duration),
            ended: false,
            rows_sent: false,
        }
    }

    /// The next part of a line, or none at the end of the watch.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(part) = self.waiting.pop_front() {
                return Some(part);
            }
            if self.ended || Instant::now() >= self.ends {
                return None;
            }
            if let Some((records, revision)) = &mut self.initial {
                match (records.find(|record| self.selectors.matches(record)), *revision) {
                    (Some(record), _) => self.push("ADDED", &record, record.revision),
                    (None, revision) => {
                        self.initial = None;
                        if self.exchange.options.allow_bookmarks {
                            self.push_bookmark(revision, true);
                        }
                    }
                }
                continue;
            }
            tokio::select! {
                // In this order, so that the events before the end of the resource are sent.
                biased;
                () = tokio::time::sleep_until(self.ends) => return None,
                () = tokio::time::sleep_until(self.next_bookmark), if self.exchange.options.allow_bookmarks => {
                    self.next_bookmark = next_bookmark(Instant::now(), self.ends);
                    if let Ok(revision) = self.watch.progress() {
                        self.push_bookmark(revision, false);
                    }
                }
                event = self.watch.next() => match event {
                    Ok(event) => self.take(&event),
                    Err(WatchEnd::Closed) => return None,
                    Err(WatchEnd::Lagged { position, oldest }) => {
                        self.ended = true;
                        self.waiting.push_back(error_event(&too_old(position, oldest)));
                    }
                },
                () = self.exchange.resource.tenure.ended() => return None,
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
            Form::Object if is_shown_as_stored(&self.exchange, record) => {
                let shown = shown(&self.api_version, &self.exchange);
                // Smaller ones are copied, which costs less than to send them in parts.
                if record.object.len() >= SHARED && self.exchange.answer.encoding != Encoding::Protobuf {
                    let object = codec::serve_shared(record, revision, shown, &mut line);
                    self.waiting.extend([line.into(), object, Bytes::from_static(b"}\n")]);
                    return;
                }
                codec::serve(record, revision, shown, &mut line);
            }
            form => match self.represented(form, record, revision) {
                Ok(document) => line.extend_from_slice(document.to_string().as_bytes()),
                // What the client would miss of here on, it would never know.
                Err(error) => {
                    self.ended = true;
                    self.waiting.push_back(error_event(&error));
                    return;
                }
            },
        }
        line.extend_from_slice(b"}\n");
        self.waiting.push_back(line.into());
    }

    fn represented(&mut self, form: Form, record: &Record, revision: u64) -> Result<Value, ApiError> {
        let mut object = load(&self.exchange, record)?;
        metadata::set(&mut object, "resourceVersion", Some(revision.to_string().into()));
        self.in_form(form, object)
    }

    fn in_form(&mut self, form: Form, object: Value) -> Result<Value, ApiError> {
        if form == Form::Table {
            let with_columns = !std::mem::replace(&mut self.rows_sent, true);
            let revision = object["metadata"]["resourceVersion"].clone();
            let mut table = table::of_one(&self.exchange, object, with_columns)?;
            table["metadata"] = json!({ "resourceVersion": revision });
            return Ok(table);
        }
        Ok(if form == Form::Object { object } else { representation::partial(&self.exchange, &object) })
    }

    fn push_bookmark(&mut self, revision: u64, ends_initial_events: bool) {
        let bookmark = representation::bookmark(&self.exchange, revision, ends_initial_events);
        let object = self.in_form(self.exchange.answer.form, bookmark).unwrap_or_else(|error| error.status());
        self.waiting.push_back(line(&json!({ "type": "BOOKMARK", "object": object })));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_that_do_not_fit_into_nanoseconds_wrap_around() {
        assert_eq!(duration(None), DEFAULT_DURATION);
        assert_eq!(duration(Some(0)), DEFAULT_DURATION);
        assert_eq!(duration(Some(i64::MIN)), DEFAULT_DURATION);
        assert_eq!(duration(Some(5)), Duration::from_secs(5));
        assert_eq!(duration(Some(-5)), Duration::ZERO);
        assert_eq!(duration(Some(i64::MAX)), Duration::ZERO);
        let far = Instant::now() + duration(Some(9_223_372_036));
        assert!(next_bookmark(Instant::now(), far) < far);
    }

    #[tokio::test]
    async fn a_bookmark_comes_every_minute_and_shortly_before_the_end() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(next_bookmark(now, after(600)), after(60));
        assert_eq!(next_bookmark(now, after(4)), after(2));
        assert!(next_bookmark(now, after(1)) > after(1));
        assert!(next_bookmark(after(2), after(4)) > after(4));
    }
}
