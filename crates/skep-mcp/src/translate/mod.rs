//! From the words of one era to those of the other: requests, results and errors.
//!
//! `older` puts what a newer peer says into the words of an older one, `newer` the other way round, and `within` is about
//! peers of one era that speak different revisions. What has the same
//! meaning in both eras keeps its bytes; what has no counterpart is removed or told, never made up.

mod newer;
mod older;
mod questions;
mod same;
mod tools;
mod within;

pub use newer::{Envelope, discovered, newer_error, newer_request, newer_result};
pub use older::{initialized, older_error, older_notification, older_request, older_result};
pub use questions::{Outcome, Question, outcome};
pub use same::{completed, without_claims};
pub use tools::{hide_tasks, with_good_mirrors, without_mirrors};
pub use within::{agreed, answer_for, request_for, result_for};

use crate::fault::INTERNAL_ERROR;
use crate::{json, method};

/// What the server tells about itself in every result of a request that stands alone.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Removes members of an object that may be missing. The object goes with its last member.
fn remove_all(mut text: String, object: &[&str], names: &[&str]) -> Result<String, json::EditError> {
    let mut has_changed = false;
    for name in names {
        let path: Vec<&str> = object.iter().copied().chain([*name]).collect();
        if let Some(without) = json::remove(&text, &path)? {
            text = without;
            has_changed = true;
        }
    }
    let is_empty =
        |text: &str| Ok::<_, json::EditError>(json::find(text, object)?.is_some_and(|place| is_bare(place.of(text))));
    if has_changed && !object.is_empty() && is_empty(&text)? {
        text = json::remove(&text, object)?.unwrap_or(text);
    }
    Ok(text)
}

/// Whether an object has no members.
fn is_bare(object: &str) -> bool {
    let inner = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| inner.trim().is_empty())
}

/// Whether results of a method say for how long they are good.
fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        method::DISCOVER
            | method::TOOLS_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_LIST
            | method::TEMPLATES_LIST
            | method::RESOURCES_READ
    )
}

/// The code of an error.
pub fn error_code(error: &str) -> i64 {
    let code = json::find(error, &["code"]).ok().flatten().and_then(|code| code.of(error).parse().ok());
    code.unwrap_or(INTERNAL_ERROR)
}

/// An error with another code.
fn with_code(error: &str, code: i64) -> String {
    json::set(error, &["code"], &code.to_string()).unwrap_or_else(|_| error.to_owned())
}

/// The value at a path, as JSON.
fn get<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    json::find(text, path).ok().flatten().map(|place| place.of(text))
}
