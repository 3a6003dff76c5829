//! The tools: a table of what each is called, takes and does.

mod adapt;
mod arguments;
mod everyday;
mod rounds;
mod suite;

use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use self::arguments::Arguments;
use super::call::{Call, Stop};
use super::message::{Fault, Members};

/// The name of the tool that comes and goes.
const EXTRA: &str = "extra_tool";

/// One tool.
struct Tool {
    name: &'static str,
    description: &'static str,
    /// The schema of its arguments.
    input: fn() -> Value,
    /// The schema of its structured result, if it has one.
    output: Option<fn() -> Value>,
    run: Run,
}

/// What a tool does.
type Run = for<'a> fn(&'a Call, &'a Arguments) -> BoxFuture<'a, ToolResult>;

/// The result of a tool, in the words of the newest revision.
type ToolResult = Result<Value, Stop>;

/// All tools but the one that comes and goes, in the order in which they are listed.
fn all() -> impl Iterator<Item = &'static Tool> {
    everyday::TOOLS.iter().chain(suite::TOOLS).chain(rounds::TOOLS)
}

/// The answer to `tools/list`.
pub(crate) fn list(call: &Call) -> Value {
    let mut tools: Vec<Value> = all().map(|tool| definition(call, tool)).collect();
    if call.demo.extra_tool.load(Ordering::Relaxed) {
        tools.push(definition(call, &suite::EXTRA_TOOL));
    }
    json!({"tools": tools})
}

fn definition(call: &Call, tool: &Tool) -> Value {
    let mut definition = json!({"name": tool.name, "description": tool.description, "inputSchema": (tool.input)()});
    if let (Some(output), true) = (tool.output, call.revision.has_structured_results()) {
        definition["outputSchema"] = output();
    }
    definition
}

/// The schema of a tool's arguments, for those who mirror them in headers.
pub(crate) fn input_schema(name: &str) -> Option<Value> {
    all().find(|tool| tool.name == name).map(|tool| (tool.input)())
}

/// The answer to `tools/call`.
pub(crate) async fn call(call: &Call, params: &Members) -> Result<Value, Fault> {
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let extra = (name == EXTRA && call.demo.extra_tool.load(Ordering::Relaxed)).then_some(&suite::EXTRA_TOOL);
    let tool = all()
        .find(|tool| tool.name == name)
        .or(extra)
        .ok_or_else(|| Fault::invalid_params(format!("Unknown tool: {name}")))?;
    let arguments = match params.get("arguments") {
        None => Arguments::default(),
        Some(Value::Object(arguments)) => Arguments::from(arguments.clone()),
        Some(_) => return Err(Fault::invalid_params("arguments must be an object")),
    };
    match (tool.run)(call, &arguments).await {
        Ok(result) => Ok(adapt::adapt(result, call.revision)),
        Err(Stop::Failed(reason)) => Ok(json!({"content": [text(&reason)], "isError": true})),
        Err(other) => other.outcome(),
    }
}

/// A block of text.
fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A result that is a text.
fn says(words: impl AsRef<str>) -> Value {
    json!({"content": [text(words.as_ref())]})
}

/// The schema of a tool without arguments.
fn nothing() -> Value {
    json!({"type": "object", "properties": {}})
}
