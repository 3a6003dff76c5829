//! The object in the body of a request.

use serde_json::{Value, json};

use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::negotiate::{self, Encoding};
use super::super::options::FieldValidation;
use super::super::registry::Origin;
use crate::decode::{DecodeError, decode_strict};
use crate::schema::{prune, unreadable};
use crate::status::{ApiError, FieldError, ResourceName};

/// Reads the object of a create or update request: its version and kind fit the path, and members that the schema does
/// not know are gone, refused or warned of, as the request wants it.
pub fn object(exchange: &mut Exchange) -> Result<Value, ApiError> {
    let (mut object, duplicates) = decode(exchange)?;
    check_type(exchange, &mut object)?;
    tidy(exchange, &mut object, duplicates)?;
    check_namespace(exchange, &mut object)?;
    Ok(object)
}

fn decode(exchange: &Exchange) -> Result<(Value, Vec<String>), ApiError> {
    let unrecognised = |problem: &str| {
        let shown = shown(&exchange.body);
        let kind = &exchange.resource.kind;
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
             {problem} ({shown})"
        ))
    };
    match negotiate::body_encoding(exchange.content_type())? {
        Encoding::Json => decode_strict(&exchange.body).map_err(|error: DecodeError| unrecognised(&error.to_string())),
        Encoding::Yaml => {
            let text = std::str::from_utf8(&exchange.body).map_err(|error| unrecognised(&error.to_string()))?;
            let object = crate::yaml::read(text).map_err(|error| unrecognised(&error))?;
            Ok((object, Vec::new()))
        }
    }
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

/// A body may leave out what a built-in kind's path says already; a custom object must say what it is.
fn check_type(exchange: &Exchange, object: &mut Value) -> Result<(), ApiError> {
    let expected = exchange.api_version();
    let kind = &exchange.resource.kind;
    if !object.is_object() {
        let shown = object.to_string();
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
             json: cannot unmarshal {shown} into Go value"
        )));
    }
    let is_missing = |object: &Value, member: &str| object[member].as_str().is_none_or(str::is_empty);
    if matches!(exchange.resource.origin, Origin::BuiltIn(_)) {
        for (member, value) in [("apiVersion", expected.as_str()), ("kind", kind.as_str())] {
            if is_missing(object, member) {
                object[member] = value.into();
            }
        }
        return check_built_in_type(exchange, object, &expected);
    }
    if is_missing(object, "kind") {
        let shown = object.to_string();
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{shown}' ({})",
            if object.as_object().is_some_and(serde_json::Map::is_empty) { "{}".to_owned() } else { shown.clone() },
        )));
    }
    let given = object["apiVersion"].as_str().unwrap_or_default();
    if given != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version ({expected})"
        )));
    }
    let given = object["kind"].as_str().unwrap_or_default().to_owned();
    if given != *kind {
        let error = FieldError::invalid("kind", given.as_str(), format!("must be {kind}"));
        let name = ResourceName::new(&exchange.resource.group, &given);
        return Err(ApiError::invalid(&name, metadata::name(object), &[error]));
    }
    Ok(())
}

/// A built-in object of another kind or version is told apart in the words of the real server's type registry.
fn check_built_in_type(exchange: &Exchange, object: &Value, expected: &str) -> Result<(), ApiError> {
    let kind = &exchange.resource.kind;
    let given_kind = object["kind"].as_str().unwrap_or_default();
    let given = object["apiVersion"].as_str().unwrap_or_default();
    if given_kind == kind && given == expected {
        return Ok(());
    }
    let (group, version) = given.rsplit_once('/').unwrap_or(("", given));
    let problem = if crate::builtin::find(group, version, given_kind).is_some() {
        let internal = if exchange.resource.group.is_empty() {
            "core"
        } else {
            exchange.resource.group.split('.').next().unwrap_or_default()
        };
        format!("converting ({version}.{given_kind}) to ({internal}.{kind}): unknown conversion")
    } else {
        format!("no kind {given_kind:?} is registered for version {given:?} in scheme \"pkg/runtime/scheme.go:111\"")
    };
    Err(ApiError::bad_request(format!("{given_kind} in version {version:?} cannot be handled as a {kind}: {problem}")))
}

/// Takes out what the schema does not know.
pub fn tidy(exchange: &mut Exchange, object: &mut Value, duplicates: Vec<String>) -> Result<(), ApiError> {
    let schema = exchange.version()?.schema.clone();
    if let Some(problem) = unreadable(&schema, object) {
        return Err(ApiError::bad_request(problem));
    }
    let unknown = prune(&schema, object);
    let mut problems = duplicates;
    problems.extend(unknown);
    if problems.is_empty() {
        return Ok(());
    }
    match exchange.options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => exchange.warnings.extend(problems),
        FieldValidation::Strict => {
            let list = problems.join(", ");
            let kind = &exchange.resource.kind;
            return Err(ApiError::bad_request(format!(
                "{kind} in version {:?} cannot be handled as a {kind}: strict decoding error: {list}",
                exchange.path.version
            )));
        }
    }
    Ok(())
}

fn check_namespace(exchange: &Exchange, object: &mut Value) -> Result<(), ApiError> {
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
