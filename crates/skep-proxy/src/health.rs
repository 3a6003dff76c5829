//! The endpoint that a kubelet asks.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::answer::{self, Answer};
use crate::eras::record::Status;

/// What the health endpoint says besides that the proxy is there.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    pub(crate) transport: &'static str,
    /// Whether the server can be reached, where that is known, and how long it took to answer.
    pub(crate) server: Option<Result<Option<Duration>, String>>,
    /// Of which era the server is, where that is known.
    pub(crate) era: Option<Status>,
}

/// Answers a request to it. The status is 200 whatever the server does, so that a kubelet does not end a proxy because
/// its server is slow.
pub(crate) fn answer(method: &Method, health: &Health) -> Answer {
    if method != Method::GET {
        return answer::wrong_method("GET");
    }
    // A time can always be written in this form.
    let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    let status = if matches!(health.server, Some(Err(_))) { "degraded" } else { "healthy" };
    let mut body = json!({"status": status, "timestamp": now, "transport": health.transport});
    match &health.server {
        None => {}
        Some(Ok(took)) => {
            body["mcp"] = json!({"available": true, "last_checked": now});
            if let Some(took) = took {
                body["mcp"]["response_time_ms"] = json!(took.as_millis());
            }
        }
        Some(Err(error)) => body["mcp"] = json!({"available": false, "error": error, "last_checked": now}),
    }
    if let Some(Status { verdict, age, changes }) = &health.era {
        body["era"] = json!({"verdict": verdict.name(), "age_seconds": age.as_secs(), "reclassifications": changes});
    }
    answer::json(StatusCode::OK, body.to_string())
}
