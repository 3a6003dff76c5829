//! The resources: things to read, one to watch, and templates.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::call::Call;
use super::media::PNG;
use super::message::{Fault, Members, RESOURCE_NOT_FOUND};

/// The resource that the tool `touch` changes.
pub(crate) const COUNTER: &str = "demo://counter";

/// The template whose name is completed.
pub(crate) const GREETING_TEMPLATE: &str = "demo://greeting/{name}";
const GREETING_PREFIX: &str = "demo://greeting/";

/// The template of the conformance suite.
pub(crate) const FIXTURE_TEMPLATE: &str = "test://template/{id}/data";

/// The resource that the conformance suite subscribes to.
pub(crate) const WATCHED: &str = "test://watched-resource";

/// The resource that comes and goes.
const EXTRA: &str = "demo://extra";

pub(crate) fn list(call: &Call) -> Value {
    let text = |uri: &str, name: &str, description: &str| json!({"uri": uri, "name": name, "description": description, "mimeType": "text/plain"});
    let mut resources = vec![
        text("demo://about", "about", "What this server is"),
        text(COUNTER, "counter", "How often the tool `touch` was called; can be subscribed to"),
        text("test://static-text", "static-text", "A text that never changes"),
        json!({"uri": "test://static-binary", "name": "static-binary", "description": "An image of one pixel", "mimeType": "image/png"}),
        text(WATCHED, "watched-resource", "A resource to subscribe to"),
    ];
    if call.demo.extra_resource.load(Ordering::Relaxed) {
        resources.push(text(EXTRA, "extra", "Comes and goes with test_trigger_resource_change"));
    }
    json!({"resources": resources})
}

pub(crate) fn templates() -> Value {
    json!({"resourceTemplates": [
        {"uriTemplate": GREETING_TEMPLATE, "name": "greeting", "description": "A greeting for somebody", "mimeType": "text/plain"},
        {"uriTemplate": FIXTURE_TEMPLATE, "name": "template", "description": "A document that names the id it was asked for", "mimeType": "application/json"},
    ]})
}

/// The content of a resource, if there is one of that URI.
pub(crate) fn content(call: &Call, uri: &str) -> Option<Value> {
    let text = |text: String| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    Some(match uri {
        "demo://about" => text("The demo server of Skep. It speaks every revision of the protocol.".to_owned()),
        COUNTER => text(call.demo.counter.load(Ordering::Relaxed).to_string()),
        "test://static-text" => text("This is the content of the static text resource.".to_owned()),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        WATCHED => text("Watched resource content".to_owned()),
        EXTRA if call.demo.extra_resource.load(Ordering::Relaxed) => text("This resource comes and goes.".to_owned()),
        _ => {
            if let Some(name) = uri.strip_prefix(GREETING_PREFIX).filter(|name| is_segment(name)) {
                return Some(text(format!("Hello, {name}!")));
            }
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data").filter(|id| is_segment(id))?;
            let document = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": document.to_string()})
        }
    })
}

fn is_segment(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

pub(crate) fn read(call: &Call, params: &Members) -> Result<Value, Fault> {
    let uri = uri(params)?;
    content(call, uri).map(|content| json!({"contents": [content]})).ok_or_else(|| not_found(call, uri))
}

/// The URI of a resource that can be subscribed to, which is any that there is.
pub(crate) fn watchable<'a>(call: &Call, params: &'a Members) -> Result<&'a str, Fault> {
    let uri = uri(params)?;
    content(call, uri).map(|_| uri).ok_or_else(|| not_found(call, uri))
}

fn uri(params: &Members) -> Result<&str, Fault> {
    params.get("uri").and_then(Value::as_str).ok_or_else(|| Fault::invalid_params("uri is missing"))
}

fn not_found(call: &Call, uri: &str) -> Fault {
    let fault = if call.revision.is_stateless() {
        Fault::invalid_params("Resource not found")
    } else {
        Fault::new(RESOURCE_NOT_FOUND, "Resource not found")
    };
    fault.with_data(json!({"uri": uri}))
}
