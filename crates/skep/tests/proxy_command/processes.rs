//! A process for each session.

use serde_json::json;
use snapbox::cmd::cargo_bin;

use super::{ANY, Serving};

#[test]
fn each_session_has_a_process_that_can_ask_its_client() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let flags = ["--processes", "2", "--", skep, "demo", "echo", "--transport", "stdio"];
    let proxy = Serving::start(&[&ANY[..], &flags].concat());
    let sessions = [proxy.session(), proxy.session()];
    let mut streams = sessions.each_ref().map(|session| proxy.call_in(session, "sampling", &json!({"prompt": "?"})));
    for (session, stream) in sessions.iter().zip(&mut streams).rev() {
        let question = stream.message().unwrap();
        assert_eq!(question["method"], "sampling/createMessage", "{question}");
        let content = json!({"type": "text", "text": session});
        let result = json!({"role": "assistant", "content": content, "model": "test"});
        let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(proxy.tell_in(session, &reply).status, 202);
        let answer = stream.message().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], session.as_str(), "{answer}");
    }
}
