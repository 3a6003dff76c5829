//! The object in the body of a request.

use serde_json::{Value, json};

use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::negotiate::{self, Encoding};
use super::super::options::FieldValidation;
use super::super::registry::Origin;
use super::expected::{Expected, Misread};
use crate::decode::{Decoded, decode_object};
use crate::protobuf::Envelope;
use crate::schema::prune;
use crate::status::{ApiError, FieldError, ResourceName};
use crate::yaml;

/// Reads the object of a create or update request: its version and kind fit the path, and members that the schema does
/// not know are gone, refused or warned of, as the request wants it.
pub fn object(exchange: &mut Exchange) -> Result<Value, ApiError> {
    let Decoded { value: mut object, duplicates, .. } = read(exchange, &Expected::of(exchange))?;
    if exchange.resource.origin == Origin::Custom {
        let (given, expected) = (object["apiVersion"].as_str().unwrap_or_default(), exchange.api_version());
        if given != expected {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({expected})"
            )));
        }
        check_custom_kind(exchange, &object)?;
    }
    tidy(exchange, &mut object, in_words_of_format(exchange, duplicates)).map_err(|problem| {
        let given = Some((exchange.resource.kind.clone(), exchange.path.version.clone()));
        refusal(&exchange.body, &exchange.resource.kind, Misread { given, problem })
    })?;
    Ok(object)
}

/// A strict reader of YAML has words of its own for what is only a warning otherwise.
fn in_words_of_format(exchange: &Exchange, duplicates: Vec<String>) -> Vec<String> {
    let is_yaml = matches!(negotiate::body_encoding(exchange.content_type()), Ok(Encoding::Yaml));
    let is_strict = exchange.options.field_validation == FieldValidation::Strict;
    if is_yaml && is_strict && !duplicates.is_empty() { vec![yaml::strictly(&duplicates)] } else { duplicates }
}

/// Reads the body of a request, which must be of a certain kind.
pub fn read(exchange: &Exchange, expected: &Expected<'_>) -> Result<Decoded, ApiError> {
    read_body(&exchange.body, exchange.content_type(), expected)
}

/// Reads a body that must be of a certain kind.
pub fn read_body(body: &[u8], content_type: Option<&str>, expected: &Expected<'_>) -> Result<Decoded, ApiError> {
    let refuse = |misread| refusal(body, expected.kind, misread);
    let mut decoded = decode(body, content_type, expected)?.map_err(refuse)?;
    let text = || String::from_utf8_lossy(body).into_owned();
    expected.check(&mut decoded.value, &decoded.numbers, text).map_err(refuse)?;
    Ok(decoded)
}

/// Reads a body in whatever form it comes.
pub fn decode(
    body: &[u8],
    content_type: Option<&str>,
    expected: &Expected<'_>,
) -> Result<Result<Decoded, Misread>, ApiError> {
    Ok(match negotiate::body_encoding(content_type)? {
        Encoding::Json => decode_object(body).map_err(Misread::from),
        Encoding::Yaml => read_yaml(body),
        Encoding::Protobuf if expected.is_custom() => return Err(negotiate::unsupported_body()),
        Encoding::Protobuf => protobuf(body, expected),
    })
}

/// An object in protobuf says what it is in its envelope, and may be of another kind than the expected one.
fn protobuf(body: &[u8], expected: &Expected<'_>) -> Result<Decoded, Misread> {
    let mut envelope = Envelope::open(body).map_err(|error| Misread { given: None, problem: error.to_string() })?;
    envelope.default_type(&expected.api_version(), expected.kind);
    let value = envelope.object().map_err(|error| {
        let version = envelope.api_version.rsplit('/').next().unwrap_or_default();
        Misread { given: Some((envelope.kind.clone(), version.to_owned())), problem: error.to_string() }
    })?;
    Ok(Decoded { value, ..Decoded::default() })
}

fn read_yaml(body: &[u8]) -> Result<Decoded, Misread> {
    let unreadable = |problem: String| Misread { given: None, problem };
    let text = std::str::from_utf8(body).map_err(|_| unreadable(yaml::NOT_TEXT.to_owned()))?;
    let yaml::Document { value, duplicates } = yaml::read(text).map_err(unreadable)?;
    Ok(Decoded { value, duplicates, ..Decoded::default() })
}

/// What a client is told about a body that cannot be read.
fn refusal(body: &[u8], expected: &str, misread: Misread) -> ApiError {
    let Misread { given, problem } = misread;
    ApiError::bad_request(if let Some((kind, version)) = given {
        format!("{kind} in version {version:?} cannot be handled as a {expected}: {problem}")
    } else {
        let shown = shown(body);
        format!("the object provided is unrecognized (must be of type {expected}): {problem} ({shown})")
    })
}

/// The beginning of a body that cannot be read.
fn shown(body: &[u8]) -> String {
    const LIMIT: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let beginning = &body[..body.len().min(LIMIT)];
    let text =
        if body.starts_with(b"{") { String::from_utf8_lossy(beginning).into_owned() } else { hex::encode(beginning) };
    if body.len() > LIMIT { format!("{text} ...") } else { text }
}

/// A custom object is of the kind that its path says.
pub fn check_custom_kind(exchange: &Exchange, object: &Value) -> Result<(), ApiError> {
    let given = |member: &str| object[member].as_str().unwrap_or_default();
    let expected = [("apiVersion", exchange.api_version()), ("kind", exchange.resource.kind.clone())];
    for (member, expected) in expected {
        if given(member) != expected {
            let error = FieldError::invalid(member, given(member), format!("must be {expected}"));
            let group = given("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
            let name = ResourceName::new(group, given("kind"));
            return Err(ApiError::invalid(&name, metadata::name(object), &[error]));
        }
    }
    Ok(())
}

/// Takes out what the schema does not know. The error is for a request that wants to hear of it.
pub fn tidy(exchange: &mut Exchange, object: &mut Value, oddities: Vec<String>) -> Result<(), String> {
    let Ok(version) = exchange.version() else { return Ok(()) };
    let schema = version.schema.clone();
    let mut problems = oddities;
    problems.extend(prune(&schema, object));
    match exchange.options.field_validation {
        FieldValidation::Strict if !problems.is_empty() => {
            return Err(format!("strict decoding error: {}", problems.join(", ")));
        }
        FieldValidation::Warn => exchange.warn(problems),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    Ok(())
}

/// The name of an object must be the one in its path.
pub fn check_name(exchange: &Exchange, object: &Value) -> Result<(), ApiError> {
    let (given, expected) = (metadata::name(object), exchange.name());
    if given == expected {
        return Ok(());
    }
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        )));
    }
    Err(ApiError::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({expected})"
    )))
}

/// So must its namespace, which may also be left out.
pub fn check_namespace(exchange: &Exchange, object: &mut Value) -> Result<(), ApiError> {
    let given = metadata::namespace(object);
    if !exchange.resource.namespaced {
        metadata::set(object, "namespace", None);
        return Ok(());
    }
    if !given.is_empty() && given != exchange.namespace() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    metadata::set(object, "namespace", Some(json!(exchange.namespace())));
    Ok(())
}
