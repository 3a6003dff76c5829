//! The recordings of the real server, in `conformance/kube/golden`.

use std::path::PathBuf;
use std::{fs, io};

use serde_json::{Value, json};

use super::recording::{Exchange, Recording};

/// Why a golden recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    #[error("no golden recording {}: {source}; UPDATE_GOLDEN=1 writes it", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is not a recording: {source}", path.display())]
    Parse { path: PathBuf, source: serde_json::Error },
}

fn path_of(scenario: &str) -> PathBuf {
    super::folder().join("golden").join(format!("{scenario}.json"))
}

/// What the real server answered.
pub fn golden(scenario: &str) -> Result<Recording, GoldenError> {
    let path = path_of(scenario);
    let text = fs::read_to_string(&path).map_err(|source| GoldenError::Read { path: path.clone(), source })?;
    serde_json::from_str(&text).map_err(|source| GoldenError::Parse { path, source })
}

/// Writes down what the real server answered.
pub fn write_golden(recording: &Recording) -> Result<(), GoldenError> {
    let path = path_of(&recording.scenario);
    let text = printed(recording);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
    written.map_err(|source| GoldenError::Write { path, source })
}

/// The JSON text of a recording, each step with its request first.
fn printed(recording: &Recording) -> String {
    let exchanges: Vec<String> = recording.exchanges.iter().map(printed_exchange).collect();
    let scenario = json!(recording.scenario);
    format!("{{\n\"scenario\": {scenario},\n\"exchanges\": [\n{}\n]\n}}\n", exchanges.join(",\n"))
}

fn printed_exchange(exchange: &Exchange) -> String {
    let Exchange { step, request, status, headers, body } = exchange;
    let mut text = format!("{{\"step\": {step}, \"request\": {}, \"status\": {status}", json!(request));
    for (name, part) in [("headers", json!(headers)), ("body", body.clone())] {
        if part != json!({}) && !part.is_null() {
            text.extend([",\n \"", name, "\": "]);
            print(&part, 1, &mut text);
        }
    }
    text.push('}');
    text
}

/// Values that fit stay on one line: a recording is read by people, and most of it is small.
const LINE: usize = 120;

fn print(value: &Value, depth: usize, text: &mut String) {
    let line = value.to_string();
    if line.len() + depth <= LINE {
        text.push_str(&line);
        return;
    }
    let indent = " ".repeat(depth + 1);
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                text.push_str(if index == 0 { "\n" } else { ",\n" });
                text.push_str(&indent);
                text.push_str(&Value::String(key.clone()).to_string());
                text.push_str(": ");
                print(member, depth + 1, text);
            }
            text.push('\n');
            text.push_str(&" ".repeat(depth));
            text.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "\n" } else { ",\n" });
                text.push_str(&indent);
                print(item, depth + 1, text);
            }
            text.push('\n');
            text.push_str(&" ".repeat(depth));
            text.push(']');
        }
        _ => text.push_str(&line),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_printed_is_the_same_recording() {
        let exchange = |body: Value| Exchange {
            step: 1,
            request: "GET /\"x\"".into(),
            status: 200,
            headers: BTreeMap::from([("warning".to_owned(), "w".repeat(130))]),
            body,
        };
        let long = json!({ "a": [1, { "b": "x".repeat(200) }, []], "c": {}, "d": [["y".repeat(130)]] });
        let exchanges = [long, Value::Null, json!("text")].map(exchange).to_vec();
        let recording = Recording { scenario: "area/name".into(), exchanges };
        assert_eq!(serde_json::from_str::<Recording>(&printed(&recording)).ok(), Some(recording));
    }
}
