//! The tools that a person tries first. Each shows one thing that a server can do.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Arguments, Tool, ToolResult, nothing, says, text};
use crate::demo::call::{Call, State, Stop};
use crate::demo::changes::Change;
use crate::demo::log_level::LogLevel;
use crate::demo::question::{Question, filled_in, said};
use crate::demo::resources::COUNTER;

/// Seconds that `slow` takes at most.
const LONGEST: u64 = 600;
/// Bytes that `big` returns at most.
const BIGGEST: u64 = 8 << 20;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "echo",
        description: "Returns the message it is given.",
        input: || json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}),
        output: None,
        run: |_, arguments| Box::pin(async { Ok(says(arguments.text("message")?)) }),
    },
    Tool {
        name: "add",
        description: "Adds two numbers.",
        input: || json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}),
        output: Some(|| json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]})),
        run: |_, arguments| Box::pin(async { add(arguments) }),
    },
    Tool {
        name: "time",
        description: "Tells the time in UTC.",
        input: nothing,
        output: None,
        run: |_, _| Box::pin(async { now() }),
    },
    Tool {
        name: "slow",
        description: "Answers after some seconds, five unless told, and can be called off.",
        input: || json!({"type": "object", "properties": {"seconds": {"type": "integer", "minimum": 0, "maximum": LONGEST}}}),
        output: None,
        run: |call, arguments| Box::pin(slow(call, arguments)),
    },
    Tool {
        name: "fail",
        description: "Fails, with the message it is given.",
        input: || json!({"type": "object", "properties": {"message": {"type": "string"}}}),
        output: None,
        run: |_, arguments| {
            Box::pin(async {
                Err(Stop::Failed(arguments.optional_text("message")?.unwrap_or("failed as asked").to_owned()))
            })
        },
    },
    Tool {
        name: "big",
        description: "Returns a text of many bytes, one mebibyte unless told.",
        input: || json!({"type": "object", "properties": {"bytes": {"type": "integer", "minimum": 0, "maximum": BIGGEST}}}),
        output: None,
        run: |_, arguments| Box::pin(async { big(arguments) }),
    },
    Tool {
        name: "progress",
        description: "Reports its progress in some steps, five unless told.",
        input: || {
            json!({"type": "object", "properties": {
                "steps": {"type": "integer", "minimum": 1, "maximum": 1000},
                "milliseconds": {"type": "integer", "minimum": 0, "maximum": 10_000, "description": "How long a step takes"},
            }})
        },
        output: None,
        run: |call, arguments| Box::pin(progress(call, arguments)),
    },
    Tool {
        name: "log",
        description: "Logs a message to the client.",
        input: || {
            json!({"type": "object", "properties": {
            "level": {"type": "string", "enum": LogLevel::names()},
            "message": {"type": "string"},
        }, "required": ["message"]})
        },
        output: None,
        run: |call, arguments| Box::pin(log(call, arguments)),
    },
    Tool {
        name: "sampling",
        description: "Asks the client's model to answer a prompt.",
        input: || json!({"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}),
        output: None,
        run: |call, arguments| Box::pin(sampling(call, arguments)),
    },
    Tool {
        name: "elicitation",
        description: "Asks the person for a name, and greets them.",
        input: || json!({"type": "object", "properties": {"message": {"type": "string"}}}),
        output: None,
        run: |call, arguments| Box::pin(elicitation(call, arguments)),
    },
    Tool {
        name: "touch",
        description: "Changes the resource demo://counter, and tells those who subscribed to it.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(async { Ok(touch(call)) }),
    },
];

fn add(arguments: &Arguments) -> ToolResult {
    let (a, b) = (arguments.number("a")?, arguments.number("b")?);
    let whole = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b)).map(Value::from);
    let broken = || a.as_f64().zip(b.as_f64()).map(|(a, b)| Value::from(a + b)).filter(Value::is_number);
    let sum = whole.or_else(broken).ok_or_else(|| Stop::Failed("the sum is too large".to_owned()))?;
    Ok(json!({"content": [text(&sum.to_string())], "structuredContent": {"sum": sum}}))
}

fn now() -> ToolResult {
    let now = OffsetDateTime::now_utc().format(&Rfc3339);
    now.map(says).map_err(|error| Stop::Failed(error.to_string()))
}

async fn slow(call: &Call, arguments: &Arguments) -> ToolResult {
    let seconds = arguments.count("seconds", 5, 0..=LONGEST)?;
    for second in 0..seconds {
        call.progress(second, seconds, "waiting").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(says(format!("answered after {seconds} s")))
}

fn big(arguments: &Arguments) -> ToolResult {
    let bytes = arguments.count("bytes", 1 << 20, 0..=BIGGEST)?;
    let line = "The quick brown bee jumps over the lazy drone. ";
    let bytes = usize::try_from(bytes).map_err(|error| Stop::Failed(error.to_string()))?;
    Ok(says(line.chars().cycle().take(bytes).collect::<String>()))
}

async fn progress(call: &Call, arguments: &Arguments) -> ToolResult {
    let steps = arguments.count("steps", 5, 1..=1000)?;
    let pause = Duration::from_millis(arguments.count("milliseconds", 100, 0..=10_000)?);
    for step in 1..=steps {
        call.progress(step, steps, &format!("step {step} of {steps}")).await;
        // Afterwards, because some clients lose a message that arrives together with the answer.
        tokio::time::sleep(pause).await;
    }
    Ok(says(format!("done in {steps} steps")))
}

async fn log(call: &Call, arguments: &Arguments) -> ToolResult {
    let level = match arguments.optional_text("level")? {
        None => LogLevel::Info,
        Some(name) => LogLevel::read(&json!(name)).map_err(|fault| Stop::Failed(fault.message))?,
    };
    call.log(level, arguments.text("message")?).await;
    Ok(says("logged"))
}

async fn sampling(call: &Call, arguments: &Arguments) -> ToolResult {
    let question = Question::sampling("answer", arguments.text("prompt")?, 100);
    let answers = call.ask(&[question], State::WhenNeeded).await?;
    Ok(says(said(&answers[0])))
}

async fn elicitation(call: &Call, arguments: &Arguments) -> ToolResult {
    let message = arguments.optional_text("message")?.unwrap_or("What is your name?");
    let question = Question::form("name", message, &json!({"name": {"type": "string", "title": "Name"}}));
    let answers = call.ask(&[question], State::WhenNeeded).await?;
    Ok(match filled_in(&answers[0]) {
        Ok(form) => says(format!("Hello, {}!", form["name"].as_str().unwrap_or("stranger"))),
        Err(action) => says(format!("No name was given ({action}).")),
    })
}

fn touch(call: &Call) -> Value {
    let count = call.demo.counter.fetch_add(1, Ordering::Relaxed) + 1;
    call.demo.changes.publish(Change::Resource(COUNTER.to_owned()));
    says(format!("{COUNTER} is {count} now"))
}
