//! From a request to a message: what every transport does with a POST before it is its own affair.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use skep_mcp::era::{self, Era, Surroundings};
use skep_mcp::fault::{Fault, INVALID_REQUEST, METHOD_NOT_FOUND};
use skep_mcp::{Kind, Message, MetaKey, ReadError, Revision, header, method, translate};

use crate::answer::{self, Answer};
use crate::gather::{Ungathered, gather};
use crate::limits::Limits;
use crate::listener::Coming;

/// What a request says about itself that stands alone.
const STANDING_ALONE: [MetaKey; 3] = [MetaKey::ProtocolVersion, MetaKey::ClientCapabilities, MetaKey::ClientInfo];

/// What messages call themselves.
pub(crate) const JSON: &str = "application/json";

/// Reads a body, as far as it may go.
pub(crate) async fn body(body: Coming, limits: &Limits) -> Result<Bytes, Answer> {
    match tokio::time::timeout(limits.upload, gather(body, limits.body_bytes, &limits.held)).await {
        Ok(gathered) => gathered.map_err(|error| match error {
            Ungathered::TooLarge => answer::text(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large"),
            Ungathered::NoRoom => answer::not_ready("too many bytes of large requests are under way"),
            Ungathered::Broken(_) => answer::text(StatusCode::BAD_REQUEST, "the body ended before its end"),
        }),
        Err(_) => Err(answer::text(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}

/// Refuses a body that does not call itself JSON.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Answer> {
    if media_type(headers).eq_ignore_ascii_case(JSON) {
        Ok(())
    } else {
        Err(answer::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"))
    }
}

/// What a body calls itself, without what it says about its letters. Nothing when it says two things.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let kind = kinds.next().filter(|_| kinds.next().is_none()).and_then(|value| value.to_str().ok());
    kind.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

/// Refuses a body that has to be decoded before it can be read: whoever comes after us would read another one.
pub(crate) fn require_uncoded(headers: &HeaderMap) -> Result<(), Answer> {
    let is_plain = |coding: &http::HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Ok(());
    }
    Err(answer::refused(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Content-Encoding must be identity: a message is not compressed",
    ))
}

/// Which kinds of answer a client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
    /// Whether it takes events where nothing else will do.
    pub(crate) streams: bool,
}

impl Accepts {
    /// One that does not say takes JSON; one that takes neither is refused.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Answer> {
        let mut accepts = Self { json: false, events: false, streams: false };
        let mut says = false;
        for value in headers.get_all(ACCEPT) {
            says = true;
            for range in value.to_str().unwrap_or_default().split(',') {
                let range = range.split(';').next().unwrap_or_default().trim();
                let is = |name: &str| range.eq_ignore_ascii_case(name);
                accepts.json |= is("application/json") || is("application/*") || is("*/*");
                accepts.events |= is("text/event-stream") || is("text/*");
                accepts.streams |= accepts.events || is("*/*");
            }
        }
        if !says {
            return Ok(Self { json: true, ..accepts });
        }
        if accepts.json || accepts.events {
            return Ok(accepts);
        }
        let told = "the client must accept application/json or text/event-stream";
        Err(answer::refused(StatusCode::NOT_ACCEPTABLE, told))
    }

    /// Refuses a client that could not read a stream.
    pub(crate) fn require_events(headers: &HeaderMap) -> Result<(), Answer> {
        Self::read(headers)?.streaming().map(drop)
    }

    /// The same for an answer that can only be a stream.
    fn streaming(self) -> Result<Self, Answer> {
        if self.streams {
            return Ok(Self { events: true, ..self });
        }
        Err(answer::refused(StatusCode::NOT_ACCEPTABLE, "the client must accept text/event-stream"))
    }

    /// The same for the answer to a request that stands alone: whoever listens is answered with a stream.
    pub(crate) fn for_answer(self, request: &Message) -> Result<Self, Answer> {
        if request.method() == method::LISTEN { self.streaming() } else { Ok(self) }
    }
}

/// Refuses a batch with a message that cannot be in one.
pub(crate) fn check_batch(messages: &[Result<Message, ReadError>]) -> Result<(), Answer> {
    let is_out_of_place = |message: &Message| {
        message.method() == method::INITIALIZE || STANDING_ALONE.iter().any(|key| message.meta(*key).is_some())
    };
    if messages.iter().flatten().any(is_out_of_place) {
        let told = "a batch holds no handshake, and no requests that stand alone";
        return Err(answer::bad(&Fault::new(INVALID_REQUEST, told), None));
    }
    Ok(())
}

/// A message of a session as its server gets it; nothing when that is as it came.
pub(crate) fn within_session(message: &Message) -> Option<Message> {
    let text = translate::without_claims(message).ok().flatten()?;
    Message::read(text.into()).ok()
}

/// The session that a request names. Two of them are refused: whoever comes after us might believe the other one.
pub(crate) fn session(headers: &HeaderMap) -> Result<Option<&str>, Answer> {
    let mut values = headers.get_all(header::SESSION_ID).iter();
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => {
            let fault = Fault::new(INVALID_REQUEST, "the header Mcp-Session-Id is given more than once");
            Err(answer::bad(&fault, None))
        }
        // What is no text is the name of no session.
        (id, _) => Ok(id.map(|id| id.to_str().unwrap_or_default())),
    }
}

/// The refusal of what wants no answer and names no session: it is about nothing.
pub(crate) fn of_no_session() -> Answer {
    answer::bad(&Fault::new(INVALID_REQUEST, "the header Mcp-Session-Id is missing"), None)
}

/// Refuses a version header that names no revision, whatever the request is about.
pub(crate) fn require_known_version(headers: &HeaderMap) -> Result<(), Answer> {
    let version = header::single(headers, &header::PROTOCOL_VERSION);
    let known = version.and_then(|version| match version {
        Some(version) if Revision::parse(version).is_none() => Err(era::unsupported(version)),
        _ => Ok(()),
    });
    known.map_err(|fault| answer::bad(&fault, None))
}

/// Whether the version header names a revision whose requests stand alone.
pub(crate) fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(header::PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    version.and_then(|text| Revision::parse(text.trim())).is_some_and(Revision::is_stateless)
}

/// The revision that a request without a session is of.
pub(crate) fn revision(headers: &HeaderMap) -> Revision {
    let version = headers.get(header::PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    version.and_then(|text| Revision::parse(text.trim())).unwrap_or(Revision::ASSUMED)
}

/// The era of a message, once its headers agree with it. `session` is that of the live session it names.
pub(crate) fn classify(message: &Message, headers: &HeaderMap, session: Option<Revision>) -> Result<Era, Answer> {
    let checked = header::single(headers, &header::PROTOCOL_VERSION)
        .and_then(|version| era::classify(message, Surroundings { version, session }))
        .and_then(|era| check_modern(message, headers, era));
    checked.map_err(|fault| answer::bad(&fault, message.owned_id().as_ref()))
}

fn check_modern(message: &Message, headers: &HeaderMap, era: Era) -> Result<Era, Fault> {
    if era == Era::Modern && message.kind() == Kind::Request {
        header::check(headers, message)?;
        if method::is_only_legacy(message.method()) {
            return Err(Fault::new(METHOD_NOT_FOUND, format!("Method not found: {}", message.method())));
        }
        header::check_subject(headers, message)?;
    }
    Ok(era)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn accepts(value: Option<&'static str>) -> Option<(bool, bool)> {
        let headers = value.map(|value| (ACCEPT, HeaderValue::from_static(value)));
        Accepts::read(&headers.into_iter().collect()).ok().map(|accepts| (accepts.json, accepts.events))
    }

    #[test]
    fn a_client_says_what_it_understands() {
        assert_eq!(accepts(None), Some((true, false)));
        assert_eq!(accepts(Some("application/json, text/event-stream")), Some((true, true)));
        assert_eq!(accepts(Some("Text/Event-Stream;q=0.5")), Some((false, true)));
        assert_eq!(accepts(Some("*/*")), Some((true, false)));
        assert_eq!(accepts(Some("image/png")), None);
    }

    #[test]
    fn only_json_calls_itself_json() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=x", true),
            ("application/jsonx", false),
            ("text/plain", false),
        ] {
            let headers = [(CONTENT_TYPE, HeaderValue::from_static(kind))].into_iter().collect();
            assert_eq!(require_json(&headers).is_ok(), expected, "{kind}");
        }
    }
}
