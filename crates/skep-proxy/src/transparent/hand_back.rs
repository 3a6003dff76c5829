//! The answer of a server, as the client gets it.

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderValue, Response};
use skep_mcp::era::Era;
use skep_mcp::header;

use super::announced::Announced;
use super::headers;
use super::look::Known;
use crate::answer::Answer;
use crate::body::Body;
use crate::eras::http::is_stream;

/// The answer as the client gets it.
pub(super) fn hand_back(
    mut parts: http::response::Parts,
    body: Body,
    known: &Known,
    announced: Option<Box<Announced>>,
) -> Answer {
    headers::strip(&mut parts.headers);
    parts.extensions.clear();
    parts.version = http::Version::HTTP_11;
    if known.era == Some(Era::Modern) {
        parts.headers.remove(header::SESSION_ID);
    }
    if let Some(id) = known.bound().and_then(|session| HeaderValue::from_str(&session.id).ok())
        && parts.headers.contains_key(header::SESSION_ID)
    {
        // The client keeps the id that it knows, whatever a server in its server's place calls it.
        parts.headers.insert(header::SESSION_ID, id);
    }
    let is_readable = is_stream(&parts.headers) && !parts.headers.contains_key(CONTENT_ENCODING);
    match announced.filter(|_| is_readable) {
        Some(announced) => {
            parts.headers.remove(CONTENT_LENGTH);
            Response::from_parts(parts, announced.stream(body))
        }
        None => Response::from_parts(parts, body),
    }
}
