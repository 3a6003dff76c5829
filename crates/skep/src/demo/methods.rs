//! The methods of the protocol, by name.

use serde_json::{Value, json};

use super::call::{Call, Stop};
use super::era::SERVER_KEY;
use super::log_level::LogLevel;
use super::message::{Fault, Members, Request};
use super::revision::Revision;
use super::{completion, listen, prompts, resources, tools};

/// What a model should know about the server.
pub(crate) const INSTRUCTIONS: &str =
    "A demo server: every tool, resource and prompt exists to show one feature of the protocol.";

/// The methods of requests that stand alone.
const STATELESS: [&str; 10] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
];

/// How long a client may keep a list. Changes are announced, so this is only for clients that do not listen.
const LIST_LIFETIME_MILLISECONDS: u64 = 60_000;

/// Whether a request that stands alone may use the method.
pub(crate) fn is_stateless(method: &str) -> bool {
    STATELESS.contains(&method)
}

pub(crate) fn server_info() -> Value {
    json!({"name": "skep-demo-echo", "title": "Skep demo server", "version": env!("CARGO_PKG_VERSION")})
}

pub(crate) fn capabilities(revision: Revision) -> Value {
    let mut capabilities = json!({
        "logging": {},
        "prompts": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "tools": {"listChanged": true},
    });
    if revision >= Revision::March2025 {
        capabilities["completions"] = json!({});
    }
    capabilities
}

/// Answers a request. The handshake and what belongs to it is not here.
pub(crate) async fn answer(call: &Call, request: &Request) -> Result<Value, Fault> {
    let (method, params) = (request.method.as_str(), &request.params);
    let result = match method {
        "tools/list" => first_page(params, || tools::list(call)),
        "tools/call" => tools::call(call, params).await,
        "resources/list" => first_page(params, || resources::list(call)),
        "resources/templates/list" => first_page(params, resources::templates),
        "resources/read" => resources::read(call, params),
        "prompts/list" => first_page(params, || prompts::list(call)),
        "prompts/get" => prompts::get(call, params).await.or_else(Stop::outcome),
        "completion/complete" => completion::complete(params),
        _ => match call.session() {
            Some(session) => match method {
                "logging/setLevel" => set_level(params, |level| session.set_log_level(level)),
                "resources/subscribe" => session.watch(resources::watchable(call, params)?).map(|()| json!({})),
                "resources/unsubscribe" => {
                    session.unwatch(resources::watchable(call, params)?);
                    Ok(json!({}))
                }
                _ => Err(Fault::method_not_found(method)),
            },
            None => match method {
                "server/discover" => Ok(discover(call)),
                "subscriptions/listen" => listen::listen(call, request).await,
                _ => Err(Fault::method_not_found(method)),
            },
        },
    }?;
    Ok(if call.session().is_some() { result } else { complete(method, result) })
}

fn discover(call: &Call) -> Value {
    json!({
        "supportedVersions": call.demo.spoken.names(),
        "capabilities": capabilities(Revision::July2026),
        "instructions": INSTRUCTIONS,
    })
}

/// Lists fit on one page, so a client that asks for another one did not get its cursor here.
fn first_page(params: &Members, list: impl FnOnce() -> Value) -> Result<Value, Fault> {
    if params.contains_key("cursor") { Err(Fault::invalid_params("unknown cursor")) } else { Ok(list()) }
}

fn set_level(params: &Members, set: impl FnOnce(LogLevel)) -> Result<Value, Fault> {
    set(LogLevel::read(params.get("level").unwrap_or(&Value::Null))?);
    Ok(json!({}))
}

/// Adds what every result of a request that stands alone must say.
fn complete(method: &str, mut result: Value) -> Value {
    if result.get("resultType").is_none() {
        result["resultType"] = json!("complete");
        let lifetime = match method {
            "server/discover" | "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                Some(LIST_LIFETIME_MILLISECONDS)
            }
            "resources/read" => Some(0),
            _ => None,
        };
        if let Some(lifetime) = lifetime {
            result["ttlMs"] = json!(lifetime);
            result["cacheScope"] = json!("public");
        }
    }
    if !result["_meta"].is_object() {
        result["_meta"] = json!({});
    }
    result["_meta"][SERVER_KEY] = server_info();
    result
}
