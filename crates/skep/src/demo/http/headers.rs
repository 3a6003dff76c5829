//! The headers of the protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::refusal::Refusal;
use crate::demo::message::{Fault, HEADER_MISMATCH, Request};
use crate::demo::revision::Revision;
use crate::demo::tools;

pub(super) const VERSION: &str = "mcp-protocol-version";
pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const LAST_EVENT: &str = "last-event-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The value of a header that may be given once, without the space around it.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Fault> {
    let mut values = headers.get_all(name).iter();
    let mismatch = |problem: &str| Fault::new(HEADER_MISMATCH, format!("the header {name} {problem}"));
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(|text| Some(text.trim()))
            .map_err(|_| mismatch("has characters that do not belong there")),
        (Some(_), Some(_)) => Err(mismatch("is given more than once")),
    }
}

/// Whether the version header names a revision whose requests stand alone.
pub(super) fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|value| value.to_str().ok());
    version.and_then(|text| Revision::parse(text.trim())).is_some_and(Revision::is_stateless)
}

/// Refuses a client that does not understand what the answer may be.
pub(super) fn require_accept(headers: &HeaderMap, types: &[&str]) -> Result<(), Refusal> {
    let accepted = |wanted: &str| {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|range| {
            let range = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            let family = wanted.split('/').next().unwrap_or_default();
            range == wanted || range == "*/*" || range.strip_suffix("/*") == Some(family)
        })
    };
    match types.iter().find(|wanted| !accepted(wanted)) {
        None => Ok(()),
        Some(missing) => {
            Err(Refusal::transport(StatusCode::NOT_ACCEPTABLE, &format!("the client must accept {missing}")))
        }
    }
}

/// Refuses a body that does not call itself JSON.
pub(super) fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Refusal::transport(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"))
    }
}

/// Checks that the header of the method says what the body says.
pub(super) fn check_method(headers: &HeaderMap, request: &Request) -> Result<(), Fault> {
    check(headers, METHOD, Some(&Value::from(request.method.as_str())), |header| Some(header.to_owned()))
}

/// Checks that the header of the name, and those that repeat arguments, say what the body says.
pub(super) fn check_name_and_arguments(headers: &HeaderMap, request: &Request) -> Result<(), Fault> {
    let params = &request.params;
    match request.method.as_str() {
        "tools/call" => {
            check(headers, NAME, params.get("name"), decoded)?;
            let schema = params.get("name").and_then(Value::as_str).and_then(tools::input_schema);
            schema.map_or(Ok(()), |schema| check_arguments(headers, &schema, params.get("arguments")))
        }
        "prompts/get" => check(headers, NAME, params.get("name"), decoded),
        "resources/read" => check(headers, NAME, params.get("uri"), decoded),
        _ => Ok(()),
    }
}

fn check_arguments(headers: &HeaderMap, schema: &Value, arguments: Option<&Value>) -> Result<(), Fault> {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let value = arguments.and_then(|arguments| arguments.get(name)).filter(|value| !value.is_null());
        if let Some(header) = property["x-mcp-header"].as_str() {
            check(headers, &format!("mcp-param-{header}"), value, decoded)?;
        }
        check_arguments(headers, property, value)?;
    }
    Ok(())
}

/// Checks that a header is there exactly when the value is, and that they agree.
fn check(
    headers: &HeaderMap,
    name: &str,
    value: Option<&Value>,
    decode: fn(&str) -> Option<String>,
) -> Result<(), Fault> {
    let mismatch = |problem: &str| Err(Fault::new(HEADER_MISMATCH, format!("the header {name} {problem}")));
    match (single(headers, name)?, value) {
        (None, None) => Ok(()),
        (None, Some(_)) => mismatch("is missing"),
        (Some(_), None) => mismatch("has no counterpart in the body"),
        (Some(header), Some(value)) if decode(header).is_some_and(|header| agree(&header, value)) => Ok(()),
        (Some(_), Some(_)) => mismatch("does not match the body"),
    }
}

fn agree(header: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => header == text,
        Value::Bool(flag) => header == if *flag { "true" } else { "false" },
        // `7`, `7.0` and `07` are one number.
        Value::Number(number) => header.parse::<f64>().ok() == number.as_f64(),
        _ => false,
    }
}

/// Undoes the encoding of values that a header cannot hold.
fn decoded(header: &str) -> Option<String> {
    match header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(header.to_owned()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}
