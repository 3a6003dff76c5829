//! What stdio demands beyond the messages.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::process::{command, terminate};

/// What the server writes when it is given these lines and then nothing more.
fn session(lines: &[String]) -> Vec<Value> {
    let mut child = command("stdio").spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    drop(input);
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success());
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn both_eras_live_side_by_side_and_the_end_of_the_input_is_the_end() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let mut answers = session(&[
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {"_meta": meta}}).to_string(),
        String::new(),
        "{".to_owned(),
        json!({"jsonrpc": "2.0", "id": null, "method": "ping"}).to_string(),
        json!({"jsonrpc": "2.0", "id": "last", "method": "ping"}).to_string(),
    ]);
    let mut take = |id: Option<Value>| {
        let index = answers.iter().position(|answer| answer.get("id") == id.as_ref()).unwrap();
        answers.remove(index)
    };
    assert_eq!(take(Some(json!(1)))["error"]["code"], -32600, "no handshake was made");
    assert!(take(Some(json!(2)))["result"]["supportedVersions"].is_array());
    assert_eq!(take(Some(json!("last")))["result"], json!({}));
    let mut codes = [take(None)["error"]["code"].as_i64(), take(None)["error"]["code"].as_i64()];
    codes.sort_unstable();
    assert_eq!(codes, [Some(-32700), Some(-32600)]);
    assert!(answers.is_empty());
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(5 << 20));
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}).to_string();
    let answers = session(&[long, ping]);
    assert_eq!(answers.len(), 2);
    assert_eq!((&answers[0]["error"]["code"], &answers[1]["id"]), (&json!(-32600), &json!(2)));
}

#[test]
fn it_stops_when_it_is_asked_to_while_the_input_is_open() {
    let mut child = command("stdio").spawn().unwrap();
    let mut first = [0; 8];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    terminate(&child);
    assert!(child.wait().unwrap().success());
}
