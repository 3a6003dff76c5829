//! How long an object is given between the wish that it goes and its end.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::exchange::Exchange;
use super::super::metadata;
use super::delete_options::DeleteOptions;
use crate::go_text::wrapped_nanoseconds;

const DELETION_TIMESTAMP: &str = "deletionTimestamp";
const GRACE_PERIOD: &str = "deletionGracePeriodSeconds";
/// What a pod is given that says nothing.
const DEFAULT_SECONDS: i64 = 30;

/// The time that a deletion gives an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grace {
    /// The object knows no such time, or it is over.
    Unknown,
    /// So many seconds from when it was first deleted.
    Seconds(i64),
    /// It is running already, and would not become shorter.
    Running,
}

impl Grace {
    /// Only pods are given time, and those that run nowhere none at all.
    pub(super) fn of(exchange: &Exchange, old: &Value, options: &DeleteOptions) -> Self {
        let is_pod = exchange.resource.group.is_empty() && exchange.resource.plural == "pods";
        if !is_pod {
            return Self::Unknown;
        }
        let wanted = options.grace_period_seconds.map(not_negative);
        if metadata::is_being_deleted(old) {
            return match (old["metadata"][GRACE_PERIOD].as_i64(), wanted) {
                (None | Some(0), _) => Self::Unknown,
                (Some(running), Some(wanted)) if wanted < running => Self::Seconds(wanted),
                _ => Self::Running,
            };
        }
        let is_bound = old["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        let is_done = matches!(old["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if !is_bound || is_done {
            return Self::Seconds(0);
        }
        let own = || old["spec"]["terminationGracePeriodSeconds"].as_i64().map_or(DEFAULT_SECONDS, not_negative);
        Self::Seconds(wanted.unwrap_or_else(own))
    }

    pub(super) fn seconds(self) -> i64 {
        match self {
            Self::Seconds(seconds) => seconds,
            Self::Unknown | Self::Running => 0,
        }
    }
}

/// Less than nothing is taken for very little.
fn not_negative(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// Notes that the object is on its way out, which is a change of what is wanted.
pub(super) fn mark(new: &mut Value, grace: Option<i64>) {
    let seconds = grace.unwrap_or_default();
    let now = Timestamp::now();
    let end = if metadata::is_being_deleted(new) {
        end_of(new).and_then(|(end, running)| {
            end.checked_sub(period(running)).and_then(|from| from.checked_add(period(seconds))).ok()
        })
    } else {
        if let Some(generation) = new["metadata"]["generation"].as_i64() {
            metadata::set(new, "generation", Some(json!(generation.wrapping_add(1))));
        }
        now.checked_add(period(seconds)).ok()
    };
    if let Some(end) = end {
        let end = end.max(now).strftime("%Y-%m-%dT%H:%M:%SZ");
        metadata::set(new, DELETION_TIMESTAMP, Some(json!(end.to_string())));
    }
    metadata::set(new, GRACE_PERIOD, grace.map(Value::from));
}

/// Some 292 years in either direction at most, as on the real server, which counts in nanoseconds.
fn period(seconds: i64) -> SignedDuration {
    SignedDuration::from_nanos(wrapped_nanoseconds(seconds))
}

/// When the time of an object is over, and how much of it there was; none if it had none.
fn end_of(object: &Value) -> Option<(Timestamp, i64)> {
    let end = object["metadata"][DELETION_TIMESTAMP].as_str()?.parse().ok()?;
    let running = object["metadata"][GRACE_PERIOD].as_i64().filter(|running| *running > 0)?;
    Some((end, running))
}
