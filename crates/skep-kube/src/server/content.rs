//! In which encodings answers go. Everything else in the server deals in JSON.

use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode, response};
use serde_json::Value;

use super::exchange::failure;
use super::negotiate::{Encoding, PROTOBUF};
use crate::protobuf::{self, EncodeError};
use crate::status::ApiError;

/// An answer that is one JSON document, in the encoding that the client wants.
pub fn reply(head: response::Builder, encoding: Encoding, document: Bytes) -> Response<Body> {
    let document = match encoding {
        Encoding::Json => document,
        Encoding::Yaml => to_yaml(&document),
        Encoding::Protobuf => match protobuf::encode_json(&document) {
            Ok(message) => message.into(),
            // Negotiation offers protobuf for what has messages; if it is wrong about one, that is our mistake.
            Err(error) => return failure(&ApiError::internal(&error.to_string()), Encoding::Json),
        },
    };
    encoded(head, encoding, Body::from(document))
}

/// An answer that is in its encoding already.
pub fn encoded(head: response::Builder, encoding: Encoding, body: Body) -> Response<Body> {
    let content_type = match encoding {
        Encoding::Json => "application/json",
        Encoding::Yaml => "application/yaml",
        Encoding::Protobuf => PROTOBUF,
    };
    head.header(CONTENT_TYPE, content_type).body(body).unwrap_or_default()
}

/// A JSON document as YAML. What cannot be turned stays JSON, which is YAML too.
pub fn to_yaml(document: &Bytes) -> Bytes {
    let value = serde_json::from_slice(document).ok().map(|mut value: Value| {
        value.sort_all_objects();
        value
    });
    let yaml = value.and_then(|value| crate::yaml::write(&value).ok());
    yaml.map_or_else(|| document.clone(), Bytes::from)
}

/// The answer to a watch, whose events follow one by one.
pub fn stream(encoding: Encoding, body: Body) -> Response<Body> {
    let content_type = match encoding {
        Encoding::Json | Encoding::Yaml => "application/json",
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
    };
    Response::builder().status(StatusCode::OK).header(CONTENT_TYPE, content_type).body(body).unwrap_or_default()
}

/// An event of a watch, which is a line of JSON, in the encoding that the client wants.
pub fn event(encoding: Encoding, line: Bytes) -> Bytes {
    if encoding != Encoding::Protobuf {
        return line;
    }
    let encoded = serde_json::from_slice(&line)
        .map_err(|error| EncodeError::Document(error.to_string()))
        .and_then(|event: Value| protobuf::watch_event(event["type"].as_str().unwrap_or_default(), &event["object"]));
    match encoded {
        Ok(frame) => frame.into(),
        // As in an answer; the client keeps its stream.
        Err(error) => {
            let status = ApiError::internal(&error.to_string()).status();
            protobuf::watch_event("ERROR", &status).unwrap_or_default().into()
        }
    }
}
