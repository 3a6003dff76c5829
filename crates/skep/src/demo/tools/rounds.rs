//! The tools by which the public conformance suite checks questions to the client that take one or more rounds. They
//! work in sessions as well, where each question is a request of the server.

use serde_json::{Value, json};

use super::{Tool, ToolResult, nothing, says};
use crate::demo::call::{Call, State};
use crate::demo::question::{Question, filled_in, said};

pub(super) const TOOLS: &[Tool] = &[
    tool("test_input_required_result_elicitation", "Asks for a name.", |call, _| Box::pin(name(call))),
    tool("test_streaming_elicitation", "Asks for a name.", |call, _| Box::pin(name(call))),
    tool("test_input_required_result_sampling", "Asks the client's model for a capital.", |call, _| {
        Box::pin(capital(call))
    }),
    tool("test_input_required_result_list_roots", "Asks for the client's roots.", |call, _| Box::pin(roots(call))),
    tool("test_input_required_result_request_state", "Asks for a confirmation, with state.", |call, _| {
        Box::pin(confirm(call))
    }),
    tool("test_input_required_result_tampered_state", "Asks for a confirmation, with state.", |call, _| {
        Box::pin(confirm(call))
    }),
    tool("test_input_required_result_multiple_inputs", "Asks three questions at once.", |call, _| {
        Box::pin(at_once(call))
    }),
    tool("test_input_required_result_multi_round", "Asks two questions, one after the other.", |call, _| {
        Box::pin(in_turn(call))
    }),
    tool("test_input_required_result_capabilities", "Asks whatever the client can be asked.", |call, _| {
        Box::pin(whatever(call))
    }),
];

const fn tool(name: &'static str, description: &'static str, run: super::Run) -> Tool {
    Tool { name, description, input: nothing, output: None, run }
}

fn form(key: &'static str, message: &str, property: &str, kind: &str) -> Question {
    Question::form(key, message, &json!({property: {"type": kind}}))
}

fn name_question() -> Question {
    form("user_name", "What is your name?", "name", "string")
}

fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    filled_in(answer).ok().and_then(|form| form[name].as_str()).unwrap_or("stranger")
}

fn root_names(answer: &Value) -> String {
    let uris = answer["roots"].as_array().into_iter().flatten().filter_map(|root| root["uri"].as_str());
    uris.collect::<Vec<&str>>().join(", ")
}

async fn name(call: &Call) -> ToolResult {
    let answers = call.ask(&[name_question()], State::WhenNeeded).await?;
    Ok(says(format!("Hello, {}!", field(&answers[0], "name"))))
}

async fn capital(call: &Call) -> ToolResult {
    let question = Question::sampling("capital_question", "What is the capital of France?", 100);
    let answers = call.ask(&[question], State::WhenNeeded).await?;
    Ok(says(said(&answers[0])))
}

async fn roots(call: &Call) -> ToolResult {
    let answers = call.ask(&[Question::roots("client_roots")], State::WhenNeeded).await?;
    Ok(says(format!("Roots: {}", root_names(&answers[0]))))
}

async fn confirm(call: &Call) -> ToolResult {
    let answers = call.ask(&[form("confirm", "Please confirm", "ok", "boolean")], State::Always).await?;
    let verdict =
        if filled_in(&answers[0]).is_ok_and(|form| form["ok"] == true) { "confirmed" } else { "not confirmed" };
    Ok(says(format!("state-ok, {verdict}")))
}

async fn at_once(call: &Call) -> ToolResult {
    let greeting = Question::sampling("greeting", "Generate a greeting", 50);
    let answers = call.ask(&[name_question(), greeting, Question::roots("client_roots")], State::Always).await?;
    let [name, greeting, roots] = answers.as_slice() else { return Ok(says("no answers")) };
    Ok(says(format!("{} {} (roots: {})", said(greeting), field(name, "name"), root_names(roots))))
}

async fn in_turn(call: &Call) -> ToolResult {
    let first = call.ask(&[form("step1", "Step 1: What is your name?", "name", "string")], State::Always).await?;
    let question = form("step2", "Step 2: What is your favorite color?", "color", "string");
    let second = call.ask(&[question], State::Always).await?;
    Ok(says(format!("{} likes {}.", field(&first[0], "name"), field(&second[0], "color"))))
}

async fn whatever(call: &Call) -> ToolResult {
    let capital = Question::sampling("capital_question", "What is the capital of France?", 100);
    let all = [name_question(), capital, Question::roots("client_roots")];
    let possible: Vec<Question> = all.into_iter().filter(|question| call.can_ask(question.kind)).collect();
    let answers = call.ask(&possible, State::WhenNeeded).await?;
    Ok(says(format!("{} questions were answered.", answers.len())))
}
