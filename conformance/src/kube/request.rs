//! The request of a step.

use http::Request;

use super::scenario::Step;
use super::template::{TemplateError, Values};

/// Why a step is no request.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{0:?} is not a method and a path")]
    Line(String),
    #[error("{line:?} is not a request: {source}")]
    Http { line: String, source: http::Error },
}

/// What the managers of fields are called when the step does not say.
const USER_AGENT: &str = "conformance";

/// Fills in a step and makes it a request.
pub(super) fn build(step: &Step, values: &Values) -> Result<Request<Vec<u8>>, RequestError> {
    let line = values.text(&step.request)?;
    let Some((method, target)) = line.split_once(' ') else {
        return Err(RequestError::Line(line));
    };
    let body = body(step, values)?;
    let mut headers = step.headers.clone();
    headers.entry("User-Agent".into()).or_insert_with(|| USER_AGENT.into());
    if !body.is_empty() {
        let content_type = step.patch.map_or("application/json", |patch| patch.content_type());
        headers.entry("Content-Type".into()).or_insert_with(|| content_type.into());
    }
    let mut request = Request::builder().method(method).uri(encoded(target));
    for (name, value) in &headers {
        request = request.header(name, values.text(value)?);
    }
    request.body(body).map_err(|source| RequestError::Http { line, source })
}

fn body(step: &Step, values: &Values) -> Result<Vec<u8>, TemplateError> {
    if let Some(bytes) = &step.base64_body {
        return Ok(bytes.0.clone());
    }
    if let Some(text) = &step.raw_body {
        return Ok(values.text(text)?.into_bytes());
    }
    let Some(body) = &step.body else {
        return Ok(Vec::new());
    };
    let mut body = values.value(body)?;
    // Whatever reads the scenario, the same bytes are sent.
    body.sort_all_objects();
    Ok(body.to_string().into_bytes())
}

/// Encodes what may not stand in a query, and leaves what is encoded already.
fn encoded(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~%&=,:/!".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    format!("{path}?{}", query.bytes().map(encode).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded_once() {
        assert_eq!(encoded("/a?labelSelector=a in (b)&x=%3D"), "/a?labelSelector=a%20in%20%28b%29&x=%3D");
        assert_eq!(encoded("/a b"), "/a b");
    }
}
