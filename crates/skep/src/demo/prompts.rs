//! The prompts.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::call::{Call, State, Stop};
use super::media::PNG;
use super::message::{Fault, Members};
use super::question::{Question, filled_in};
use super::resources;

/// The prompt whose arguments are completed.
pub(crate) const GREET: &str = "greet";
/// The prompt whose arguments the conformance suite completes.
pub(crate) const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

pub(crate) fn list(call: &Call) -> Value {
    let argument = |name: &str, description: &str, required: bool| json!({"name": name, "description": description, "required": required});
    let mut prompts = vec![
        json!({"name": GREET, "description": "Asks for a greeting in some language", "arguments": [
            argument("name", "Who is greeted", true),
            argument("language", "The language of the greeting", false),
        ]}),
        json!({"name": "test_simple_prompt", "description": "A prompt without arguments"}),
        json!({"name": WITH_ARGUMENTS, "description": "A prompt that repeats its arguments", "arguments": [
            argument("arg1", "The first argument", true),
            argument("arg2", "The second argument", true),
        ]}),
        json!({"name": "test_prompt_with_embedded_resource", "description": "A prompt that carries a resource", "arguments": [
            argument("resourceUri", "The URI of the resource", true),
        ]}),
        json!({"name": "test_prompt_with_image", "description": "A prompt that carries an image"}),
        json!({"name": "test_input_required_result_prompt", "description": "A prompt that asks for its context first"}),
    ];
    if call.demo.extra_prompt.load(Ordering::Relaxed) {
        prompts.push(json!({"name": "extra_prompt", "description": "Comes and goes with test_trigger_prompt_change"}));
    }
    json!({"prompts": prompts})
}

pub(crate) async fn get(call: &Call, params: &Members) -> Result<Value, Stop> {
    let argument = |name: &str| -> Result<&str, Fault> {
        let value = params.get("arguments").and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
        value.ok_or_else(|| Fault::invalid_params(format!("the argument {name} is missing")))
    };
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let messages = match name {
        GREET => {
            let language = argument("language").unwrap_or("english");
            vec![says(&format!("Please greet {} in {language}.", argument("name")?))]
        }
        "test_simple_prompt" => vec![says("This is a simple prompt for testing.")],
        WITH_ARGUMENTS => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            vec![says(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument("resourceUri")?;
            // The resource may be one of another server; then its place is all there is to show.
            let resource = resources::content(call, uri)
                .unwrap_or_else(|| json!({"uri": uri, "mimeType": "text/plain", "text": "Embedded resource content"}));
            vec![
                json!({"role": "user", "content": {"type": "resource", "resource": resource}}),
                says("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            json!({"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}}),
            says("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let properties = json!({"context": {"type": "string"}});
            let question = Question::form("user_context", "What context should the prompt use?", &properties);
            let answers = call.ask(&[question], State::WhenNeeded).await?;
            let context = filled_in(&answers[0]).map_or("none", |form| form["context"].as_str().unwrap_or("none"));
            vec![says(&format!("Use this context: {context}"))]
        }
        "extra_prompt" if call.demo.extra_prompt.load(Ordering::Relaxed) => vec![says("This prompt comes and goes.")],
        _ => return Err(Fault::invalid_params(format!("there is no prompt {name:?}")).into()),
    };
    Ok(json!({"messages": messages}))
}

fn says(text: &str) -> Value {
    json!({"role": "user", "content": {"type": "text", "text": text}})
}
