//! Answers that the proxy gives itself.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use skep_mcp::fault::{Fault, INTERNAL_ERROR, METHOD_NOT_FOUND, SESSION_NOT_FOUND, TRANSPORT_ERROR};
use skep_mcp::{Id, ReadError};

use crate::body::Body;
use crate::budget;
use crate::limits::RETRY_AFTER_SECONDS;

/// An answer with a body, or the refusal of one.
pub type Answer = Response<Body>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// An answer of some type.
fn typed(status: StatusCode, kind: HeaderValue, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Body::default());
    *answer.status_mut() = status;
    answer
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    typed(status, JSON, Body::Full(body.into()))
}

/// The answers to the messages of a batch. They go out one by one, so that none has to be copied.
pub(crate) fn batch(answers: Vec<Bytes>) -> Answer {
    if answers.iter().map(Bytes::len).sum::<usize>() <= budget::SMALL {
        return json(StatusCode::OK, [&b"["[..], &answers.join(&b","[..]), b"]"].concat());
    }
    let before = std::iter::once("[").chain(std::iter::repeat(",")).map(|mark| Bytes::from_static(mark.as_bytes()));
    let parts = before.zip(answers).flat_map(|(mark, answer)| [mark, answer]);
    let parts = parts.chain([Bytes::from_static(b"]")]).map(Ok);
    typed(StatusCode::OK, JSON, Body::stream(futures::stream::iter(parts)))
}

/// An answer that Prometheus reads.
pub(crate) fn metrics(text: String) -> Answer {
    typed(StatusCode::OK, METRICS, Body::Full(text.into()))
}

/// An answer that is a stream of events.
pub(crate) fn events(body: Body) -> Answer {
    let mut answer = typed(StatusCode::OK, EVENTS, body);
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// A refusal in words.
pub(crate) fn text(status: StatusCode, message: &str) -> Answer {
    let mut answer = typed(status, TEXT, Body::Full(format!("{message}\n").into()));
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// A message was taken, where clients are told so.
pub(crate) fn accepted() -> Answer {
    typed(StatusCode::ACCEPTED, TEXT, Body::Full(Bytes::from_static(b"Accepted")))
}

/// A refusal as JSON-RPC says it.
pub(crate) fn fault(status: StatusCode, fault: &Fault, id: Option<&Id>) -> Answer {
    json(status, fault.answer(id))
}

/// A refusal by the transport, before any message was looked at.
pub(crate) fn refused(status: StatusCode, message: &'static str) -> Answer {
    fault(status, &Fault::new(TRANSPORT_ERROR, message), None)
}

/// Something that is no message.
pub(crate) fn unreadable(error: &ReadError) -> Answer {
    json(StatusCode::BAD_REQUEST, error.answer())
}

/// A message that cannot be taken as it is. The code says which status goes with it.
pub(crate) fn bad(error: &Fault, id: Option<&Id>) -> Answer {
    fault(status(error.code), error, id)
}

/// The status of a fault that the proxy finds in a message.
fn status(code: i64) -> StatusCode {
    match code {
        METHOD_NOT_FOUND | SESSION_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// There is no such session, or no longer.
pub(crate) fn no_such_session(id: Option<&Id>) -> Answer {
    bad(&Fault::new(SESSION_NOT_FOUND, "Session not found"), id)
}

/// The server's answer ended before its end, and the client has heard nothing of it yet.
pub(crate) fn broken_off(id: Option<&Id>) -> Answer {
    let told = "the answer of the MCP server broke off, or is larger than it may be";
    fault(StatusCode::BAD_GATEWAY, &Fault::new(INTERNAL_ERROR, told), id)
}

/// The server's answer was given up, because it has to be held and there is no room for it.
pub(crate) fn no_room(id: Option<&Id>) -> Answer {
    let told = "the answer is lost: the proxy holds too many bytes for clients that do not read them";
    fault(StatusCode::BAD_GATEWAY, &Fault::new(INTERNAL_ERROR, told), id)
}

/// The server cannot be reached yet; the client may come back.
pub(crate) fn not_ready(reason: &str) -> Answer {
    later(text(StatusCode::SERVICE_UNAVAILABLE, reason))
}

/// A client wants more at a time than it may have; it may come back.
pub(crate) fn too_many(error: &Fault, id: Option<&Id>) -> Answer {
    later(fault(StatusCode::TOO_MANY_REQUESTS, error, id))
}

fn later(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    answer
}

/// Another verb is needed.
pub(crate) fn wrong_method(allowed: &'static str) -> Answer {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn answers_to_a_batch_are_one_array_however_large_they_are() {
        for bytes in [1, budget::SMALL, 2 * budget::SMALL] {
            let answers: Vec<Bytes> =
                (0..3).map(|number| format!("\"{number}{}\"", "x".repeat(bytes)).into()).collect();
            let told = batch(answers.clone()).into_body().collect().await.unwrap().to_bytes();
            assert_eq!(told, [&b"["[..], &answers.join(&b","[..]), b"]"].concat());
        }
    }
}
