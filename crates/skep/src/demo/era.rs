//! To which era one request belongs: the one of handshakes and sessions, or the one where requests stand alone.
//!
//! That is a property of the single request, never of the connection it came by.

use serde_json::{Value, json};

use super::log_level::LogLevel;
use super::message::{Fault, HEADER_MISMATCH, Members, Request, UNSUPPORTED_REVISION};
use super::revision::{Revision, Spoken};

/// What the client says the revision of a request is.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can do.
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who the client is.
pub(crate) const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
/// From which level on the client wants log messages of this request.
pub(crate) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
/// Who the server is.
pub(crate) const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// The listener that a notification is for.
pub(crate) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// How a request has to be read.
#[derive(Debug)]
pub(crate) enum Era {
    /// A handshake, or a request within a session.
    Session,
    /// A request that stands alone.
    Stateless(Envelope),
}

/// What a request that stands alone says about its client.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) capabilities: Members,
    pub(crate) log_level: Option<LogLevel>,
}

/// What the transport knows besides the message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Surroundings<'a> {
    /// A transport without headers, and whether a handshake was made on it.
    Stdio { initialized: bool },
    /// An HTTP request: its version header, and the revision of the session it names.
    Http { header: Option<&'a str>, session: Option<Revision> },
}

/// Decides by the first rule that matches. A server of one era has not heard of the other.
pub(crate) fn classify(request: &Request, surroundings: Surroundings<'_>, spoken: Spoken) -> Result<Era, Fault> {
    if !spoken.has(Revision::July2026) {
        return Ok(Era::Session);
    }
    match classify_any(request, surroundings, spoken)? {
        Era::Session if spoken.newest_with_handshake().is_none() => {
            let requested = request.params.get("protocolVersion").and_then(Value::as_str);
            Err(unsupported(requested.unwrap_or_default(), spoken))
        }
        era => Ok(era),
    }
}

fn classify_any(request: &Request, surroundings: Surroundings<'_>, spoken: Spoken) -> Result<Era, Fault> {
    let meta = request.meta();
    let version = meta.and_then(|meta| meta.get(VERSION_KEY)).and_then(Value::as_str);
    let Some(version) = version else {
        return without_version(request, meta, surroundings, spoken);
    };
    if let Surroundings::Http { header, session } = surroundings {
        match header {
            None if session.is_some_and(|revision| revision.text() == version) => return Ok(Era::Session),
            None => return Err(Fault::new(HEADER_MISMATCH, "the header MCP-Protocol-Version is missing")),
            // Agreement comes before support: the versions are compared before either is looked up.
            Some(header) if header != version => {
                return Err(Fault::new(
                    HEADER_MISMATCH,
                    format!("MCP-Protocol-Version is {header}, but _meta says {version}"),
                ));
            }
            Some(_) => {}
        }
    }
    match Revision::parse(version) {
        Some(revision) if revision.is_stateless() => envelope(meta).map(Era::Stateless),
        Some(_) => Ok(Era::Session),
        None => Err(unsupported(version, spoken)),
    }
}

fn without_version(
    request: &Request,
    meta: Option<&Members>,
    surroundings: Surroundings<'_>,
    spoken: Spoken,
) -> Result<Era, Fault> {
    let missing = || Fault::invalid_params(format!("_meta lacks {VERSION_KEY}"));
    let has_session = match surroundings {
        // The body of a handshake decides, whatever the header says.
        _ if request.method == "initialize" => return Ok(Era::Session),
        Surroundings::Http { header: Some(header), .. } => {
            return match Revision::parse(header) {
                Some(revision) if revision.is_stateless() => Err(missing()),
                Some(_) => Ok(Era::Session),
                None => Err(unsupported(header, spoken)),
            };
        }
        Surroundings::Http { session, .. } => session.is_some(),
        Surroundings::Stdio { initialized } => initialized,
    };
    let speaks_stateless = meta
        .is_some_and(|meta| meta.contains_key(CLIENT_KEY) || meta.contains_key(CAPABILITIES_KEY))
        || matches!(request.method.as_str(), "server/discover" | "subscriptions/listen");
    if speaks_stateless && !has_session { Err(missing()) } else { Ok(Era::Session) }
}

fn envelope(meta: Option<&Members>) -> Result<Envelope, Fault> {
    let get = |key: &str| meta.and_then(|meta| meta.get(key));
    let Some(Value::Object(capabilities)) = get(CAPABILITIES_KEY) else {
        return Err(Fault::invalid_params(format!("_meta lacks the object {CAPABILITIES_KEY}")));
    };
    if get(CLIENT_KEY).is_some_and(|client| !client.is_object()) {
        return Err(Fault::invalid_params(format!("{CLIENT_KEY} must be an object")));
    }
    let log_level = get(LOG_LEVEL_KEY).map(LogLevel::read).transpose()?;
    Ok(Envelope { capabilities: capabilities.clone(), log_level })
}

/// The refusal of a revision that the server does not speak.
pub(crate) fn unsupported(requested: &str, spoken: Spoken) -> Fault {
    let supported = spoken.names();
    Fault::new(UNSUPPORTED_REVISION, "Unsupported protocol version")
        .with_data(json!({"supported": supported, "requested": requested}))
}

#[cfg(test)]
mod tests {
    use super::super::message::INVALID_PARAMS;
    use super::*;

    const NEW: &str = "2026-07-28";
    const OLD: &str = "2025-11-25";

    fn request(method: &str, version: Option<&str>) -> Request {
        let mut meta = json!({});
        if let Some(version) = version {
            meta = json!({VERSION_KEY: version, CAPABILITIES_KEY: {}});
        }
        let Value::Object(params) = json!({"_meta": meta}) else { unreachable!() };
        Request { id: json!(1), method: method.into(), params }
    }

    /// `session`, `stateless`, or the code of the refusal.
    fn verdict(request: &Request, surroundings: Surroundings<'_>) -> String {
        match classify(request, surroundings, Spoken::default()) {
            Ok(Era::Session) => "session".into(),
            Ok(Era::Stateless(_)) => "stateless".into(),
            Err(fault) => fault.code.to_string(),
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let session = Some(Revision::November2025);
        let mismatch = HEADER_MISMATCH.to_string();
        let unsupported = UNSUPPORTED_REVISION.to_string();
        let incomplete = INVALID_PARAMS.to_string();
        for (method, version, header, session, expected) in [
            ("initialize", None, Some("nonsense"), None, "session"),
            ("initialize", Some(NEW), Some(NEW), None, "stateless"),
            ("tools/list", Some(NEW), None, None, mismatch.as_str()),
            ("tools/list", Some(OLD), None, session, "session"),
            ("tools/list", Some(NEW), None, session, mismatch.as_str()),
            ("tools/list", Some("v999"), Some(NEW), None, mismatch.as_str()),
            ("tools/list", Some("v999"), Some("v999"), None, unsupported.as_str()),
            ("tools/list", Some(OLD), Some(OLD), session, "session"),
            ("tools/list", None, Some(NEW), None, incomplete.as_str()),
            ("tools/list", None, Some(OLD), None, "session"),
            ("tools/list", None, Some("v999"), None, unsupported.as_str()),
            ("server/discover", None, None, session, "session"),
            ("server/discover", None, None, None, incomplete.as_str()),
            ("tools/list", None, None, None, "session"),
            ("tools/list", Some(NEW), Some(NEW), session, "stateless"),
        ] {
            let found = verdict(&request(method, version), Surroundings::Http { header, session });
            assert_eq!(found, expected, "{method} {version:?} {header:?} {session:?}");
        }
    }

    #[test]
    fn a_server_of_one_era_has_not_heard_of_the_other() {
        let http = |header| Surroundings::Http { header, session: None };
        let old = Spoken::only(Some(OLD));
        let asked = classify(&request("server/discover", Some(NEW)), http(Some(NEW)), old);
        assert!(matches!(asked, Ok(Era::Session)));
        let handshake = classify(&request("initialize", None), http(None), Spoken::only(Some(NEW)));
        assert_eq!(handshake.map(|_| ()).unwrap_err().code, UNSUPPORTED_REVISION);
    }

    #[test]
    fn stdio_has_no_headers_to_disagree_with() {
        let stdio = |initialized| Surroundings::Stdio { initialized };
        assert_eq!(verdict(&request("tools/list", Some(NEW)), stdio(true)), "stateless");
        assert_eq!(verdict(&request("tools/list", None), stdio(false)), "session");
        assert_eq!(verdict(&request("server/discover", None), stdio(false)), INVALID_PARAMS.to_string());
        assert_eq!(verdict(&request("tools/list", Some("v999")), stdio(true)), UNSUPPORTED_REVISION.to_string());
    }
}
