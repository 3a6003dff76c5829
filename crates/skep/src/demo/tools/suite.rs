//! The tools that the public conformance suite calls by name.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Arguments, EXTRA, Tool, ToolResult, nothing, says, text};
use crate::demo::call::{Call, State, Stop};
use crate::demo::changes::Change;
use crate::demo::log_level::LogLevel;
use crate::demo::media::{PNG, WAV};
use crate::demo::question::{Kind, Question, filled_in, said};

/// The pause between the messages of a tool that sends several.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "test_simple_text",
        description: "Returns a text.",
        input: nothing,
        output: None,
        run: |_, _| Box::pin(async { Ok(says("This is a simple text response for testing.")) }),
    },
    Tool {
        name: "test_image_content",
        description: "Returns an image.",
        input: nothing,
        output: None,
        run: |_, _| Box::pin(async { Ok(json!({"content": [image()]})) }),
    },
    Tool {
        name: "test_audio_content",
        description: "Returns a sound.",
        input: nothing,
        output: None,
        run: |_, _| {
            Box::pin(async { Ok(json!({"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]})) })
        },
    },
    Tool {
        name: "test_embedded_resource",
        description: "Returns a resource with its content.",
        input: nothing,
        output: None,
        run: |_, _| {
            Box::pin(async {
                let resource = json!({"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."});
                Ok(json!({"content": [{"type": "resource", "resource": resource}]}))
            })
        },
    },
    Tool {
        name: "test_multiple_content_types",
        description: "Returns a text, an image and a resource.",
        input: nothing,
        output: None,
        run: |_, _| {
            Box::pin(async {
                let resource = json!({"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}"});
                Ok(
                    json!({"content": [text("Multiple content types test:"), image(), {"type": "resource", "resource": resource}]}),
                )
            })
        },
    },
    Tool {
        name: "test_tool_with_logging",
        description: "Logs three messages while it runs.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(logging(call)),
    },
    Tool {
        name: "test_logging_tool",
        description: "Logs three messages while it runs, to a client that wants them.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(logging(call)),
    },
    Tool {
        name: "test_tool_with_progress",
        description: "Reports its progress while it runs.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(progress(call)),
    },
    Tool {
        name: "test_error_handling",
        description: "Fails.",
        input: nothing,
        output: None,
        run: |_, _| {
            Box::pin(async { Err(Stop::Failed("This tool intentionally returns an error for testing".to_owned())) })
        },
    },
    Tool {
        name: "test_sampling",
        description: "Asks the client's model to answer a prompt.",
        input: || json!({"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}),
        output: None,
        run: |call, arguments| Box::pin(sampling(call, arguments)),
    },
    Tool {
        name: "test_elicitation",
        description: "Asks the person for a name and an address.",
        input: || json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}),
        output: None,
        run: |call, arguments| {
            Box::pin(async {
                let properties = json!({
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                });
                fill_in(call, Question::form("form", arguments.text("message")?, &properties)).await
            })
        },
    },
    Tool {
        name: "test_elicitation_sep1034_defaults",
        description: "Asks the person to fill in a form with defaults of every type.",
        input: nothing,
        output: None,
        run: |call, _| {
            Box::pin(fill_in(call, Question::form_with_schema("form", "Please review the form", &defaults())))
        },
    },
    Tool {
        name: "test_elicitation_sep1330_enums",
        description: "Asks the person to choose, in every way a choice can be offered.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(fill_in(call, Question::form_with_schema("form", "Please choose", &choices()))),
    },
    Tool {
        name: "test_reconnection",
        description: "Closes the stream of its answer, which the client finds when it comes back.",
        input: nothing,
        output: None,
        run: |call, _| {
            Box::pin(async {
                call.hang_up(Duration::from_millis(500));
                tokio::time::sleep(PAUSE).await;
                Ok(says("Reconnection test completed successfully."))
            })
        },
    },
    Tool {
        name: "json_schema_2020_12_tool",
        description: "Has a schema with the keywords of JSON Schema 2020-12.",
        input: rich_schema,
        output: None,
        run: |_, _| Box::pin(async { Ok(says("The schema is what matters.")) }),
    },
    Tool {
        name: "test_custom_headers",
        description: "Has arguments that clients repeat in headers.",
        input: || {
            json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "x-mcp-header": "Priority"},
            "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
        }, "required": ["region"]})
        },
        output: None,
        run: |_, arguments| Box::pin(async { Ok(says(format!("region: {}", arguments.text("region")?))) }),
    },
    Tool {
        name: "test_missing_capability",
        description: "Needs a client that declares sampling.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(async { call.require(Kind::Sampling).map(|()| says("The client declares sampling.")) }),
    },
    Tool {
        name: "test_trigger_tool_change",
        description: "Adds the tool extra_tool, or removes it.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(async { Ok(toggle(call, &call.demo.extra_tool, Change::Tools)) }),
    },
    Tool {
        name: "test_trigger_prompt_change",
        description: "Adds the prompt extra_prompt, or removes it.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(async { Ok(toggle(call, &call.demo.extra_prompt, Change::Prompts)) }),
    },
    Tool {
        name: "test_trigger_resource_change",
        description: "Adds the resource demo://extra, or removes it.",
        input: nothing,
        output: None,
        run: |call, _| Box::pin(async { Ok(toggle(call, &call.demo.extra_resource, Change::Resources)) }),
    },
];

/// The tool that comes and goes.
pub(super) const EXTRA_TOOL: Tool = Tool {
    name: EXTRA,
    description: "Comes and goes with test_trigger_tool_change.",
    input: nothing,
    output: None,
    run: |_, _| Box::pin(async { Ok(says("This tool comes and goes.")) }),
};

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

async fn logging(call: &Call) -> ToolResult {
    for (index, words) in
        ["Tool execution started", "Tool processing data", "Tool execution completed"].iter().enumerate()
    {
        if index > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        call.log(LogLevel::Info, words).await;
    }
    Ok(says("Tool with logging executed successfully"))
}

async fn progress(call: &Call) -> ToolResult {
    for done in [0, 50, 100] {
        call.progress(done, 100, &format!("Completed step {done} of 100")).await;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(says("Tool with progress executed successfully"))
}

async fn sampling(call: &Call, arguments: &Arguments) -> ToolResult {
    let question = Question::sampling("answer", arguments.text("prompt")?, 100);
    let answers = call.ask(&[question], State::WhenNeeded).await?;
    Ok(says(format!("LLM response: {}", said(&answers[0]))))
}

/// Asks one form, and tells what came of it.
async fn fill_in(call: &Call, question: Question) -> ToolResult {
    let answers = call.ask(&[question], State::WhenNeeded).await?;
    Ok(match filled_in(&answers[0]) {
        Ok(form) => says(format!("User response: action=accept, content={form}")),
        Err(action) => says(format!("User response: action={action}")),
    })
}

fn toggle(call: &Call, flag: &AtomicBool, change: Change) -> Value {
    let is_there = !flag.fetch_xor(true, Ordering::Relaxed);
    call.demo.changes.publish(change);
    says(if is_there { "added" } else { "removed" })
}

fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "description": "User status", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": true},
    }})
}

fn choices() -> Value {
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    let plain = json!(["option1", "option2", "option3"]);
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }})
}

fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
