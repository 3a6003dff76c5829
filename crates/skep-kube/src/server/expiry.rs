//! Events are notes, not state: they go away some time after they were written last.
//!
//! A task looks through them, a page at a time, and deletes those that are too old, so that watches hear of it like of
//! any deletion.

use std::sync::{Arc, Weak};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::State;
use super::write;
use crate::store::{Record, Selection};

/// How many events are looked at before others get their turn.
const PAGE: usize = 256;
/// How long the task rests between two pages, and the longest that it rests between two looks at everything.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_REST: Duration = Duration::from_mins(1);
/// A life is looked at so many times at least, so that no event outlives it by much.
const LOOKS: u32 = 10;

/// Begins to delete old events, until the state is gone.
pub fn follow(state: &Arc<State>) {
    tokio::spawn(run(Arc::downgrade(state)));
}

async fn run(state: Weak<State>) {
    let mut after: Option<(String, String)> = None;
    while let Some(held) = state.upgrade() {
        let life = held.limits.event_life;
        after = look(&held, life, after).await;
        drop(held);
        let rest = if after.is_some() { PAUSE } else { (life / LOOKS).clamp(PAUSE, LONGEST_REST) };
        tokio::time::sleep(rest).await;
    }
}

/// Looks at one page, and says where the next one begins.
async fn look(state: &State, life: Duration, after: Option<(String, String)>) -> Option<(String, String)> {
    let after = after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
    let page = state.store.list(&Selection { after, limit: Some(PAGE), ..Selection::all("/events") });
    let now = Timestamp::now();
    for record in &page.records {
        if is_old(record, life, now) {
            // One that was written again meanwhile is not old any more, and a store that does not write is told of elsewhere.
            let _ = write::expire(state, record).await;
        }
    }
    let last = page.records.last().filter(|_| page.remaining > 0)?;
    Some((last.key.namespace.to_string(), last.key.name.to_string()))
}

fn is_old(record: &Record, life: Duration, now: Timestamp) -> bool {
    let object: Value = serde_json::from_slice(&record.object.bytes()).unwrap_or_default();
    last_written(&object, now).is_some_and(|written| now.duration_since(written).unsigned_abs() > life)
}

/// When an event was written last, by what it says itself: the latest of its times that is not still to come.
fn last_written(event: &Value, now: Timestamp) -> Option<Timestamp> {
    let managed = event["metadata"]["managedFields"].as_array().into_iter().flatten().map(|entry| &entry["time"]);
    [
        &event["metadata"]["creationTimestamp"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["series"]["lastObservedTime"],
    ]
    .into_iter()
    .chain(managed)
    .filter_map(|time| time.as_str()?.parse::<Timestamp>().ok())
    .filter(|time| *time <= now)
    .max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_as_old_as_the_last_thing_it_tells_of() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let written = |event: Value| last_written(&event, now).map(|time| time.to_string());
        let created = json!({ "creationTimestamp": "2026-01-01T10:00:00Z" });
        assert_eq!(written(json!({ "metadata": created })).as_deref(), Some("2026-01-01T10:00:00Z"));
        let told = json!({ "metadata": created, "lastTimestamp": "2026-01-01T11:00:00Z", "eventTime": null });
        assert_eq!(written(told).as_deref(), Some("2026-01-01T11:00:00Z"));
        let counted = json!({ "metadata": created, "series": { "lastObservedTime": "2026-01-01T11:30:00.5Z" } });
        assert_eq!(written(counted).as_deref(), Some("2026-01-01T11:30:00.5Z"));
        let from_the_future = json!({ "metadata": created, "lastTimestamp": "2126-01-01T10:00:00Z" });
        assert_eq!(written(from_the_future).as_deref(), Some("2026-01-01T10:00:00Z"));
    }
}
