//! Completion of the arguments of prompts and templates.

use serde_json::{Value, json};

use super::message::{Fault, Members};
use super::prompts::{GREET, WITH_ARGUMENTS};
use super::resources::{FIXTURE_TEMPLATE, GREETING_TEMPLATE};

const LANGUAGES: [&str; 4] = ["english", "french", "german", "spanish"];
const NAMES: [&str; 6] = ["Ada", "Alan", "Barbara", "Edsger", "Grace", "Margaret"];
const FRENCH_NAMES: [&str; 3] = ["Amélie", "Blaise", "Sophie"];
const WORDS: [&str; 4] = ["paragraph", "paris", "park", "party"];
const NUMBERS: [&str; 3] = ["1", "12", "123"];

pub(crate) fn complete(params: &Members) -> Result<Value, Fault> {
    let text =
        |member: &str, name: &str| params.get(member).and_then(|member| member.get(name)).and_then(Value::as_str);
    let required =
        |member, name| text(member, name).ok_or_else(|| Fault::invalid_params(format!("{member}.{name} is missing")));
    let (argument, typed) = (required("argument", "name")?, required("argument", "value")?);
    // What the client has settled already narrows what is offered.
    let language = params.get("context").and_then(|context| context["arguments"]["language"].as_str());
    let values: &[&str] = match (required("ref", "type")?, text("ref", "name"), text("ref", "uri")) {
        ("ref/prompt", Some(GREET), _) => match argument {
            "language" => &LANGUAGES,
            "name" if language == Some("french") => &FRENCH_NAMES,
            "name" => &NAMES,
            _ => return Err(no_argument(argument)),
        },
        ("ref/prompt", Some(WITH_ARGUMENTS), _) => &WORDS,
        ("ref/resource", _, Some(GREETING_TEMPLATE)) => &NAMES,
        ("ref/resource", _, Some(FIXTURE_TEMPLATE)) => &NUMBERS,
        ("ref/prompt" | "ref/resource", ..) => &[],
        (other, ..) => return Err(Fault::invalid_params(format!("{other} cannot be completed"))),
    };
    let typed = typed.to_lowercase();
    let values: Vec<&&str> = values.iter().filter(|value| value.to_lowercase().starts_with(&typed)).collect();
    Ok(json!({"completion": {"total": values.len(), "hasMore": false, "values": values}}))
}

fn no_argument(name: &str) -> Fault {
    Fault::invalid_params(format!("there is no argument {name}"))
}
