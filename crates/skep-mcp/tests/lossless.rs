//! Whatever a message holds, it comes out as it went in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;
use skep_mcp::json::{self, Span};
use skep_mcp::sse::{Event, Frame, Piece, Splitter};
use skep_mcp::translate::{self, Envelope, Outcome};
use skep_mcp::{Kind, Message, MetaKey, Param, Revision};

/// JSON as people write it: any space, any numbers, names that nobody knows.
fn any_json() -> impl Strategy<Value = String> {
    let space = prop_oneof![Just(""), Just(" "), Just("\n\t"), Just("\r\n  ")];
    let number = prop_oneof![
        Just("0".to_owned()),
        Just("-0".to_owned()),
        Just("1e400".to_owned()),
        Just("12345678901234567890123".to_owned()),
        Just("1.0".to_owned()),
        any::<f64>().prop_filter("JSON has no such numbers", |number| number.is_finite()).prop_map(|n| n.to_string()),
    ];
    let string = prop_oneof![
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        Just("\"\\u0000\\/\\ud83d\\ude00\"".to_owned()),
        Just("\"\\ud800\"".to_owned()),
    ];
    let leaf = prop_oneof![Just("null".to_owned()), Just("true".to_owned()), number, string.clone()];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let members = vec((any::<u16>(), inner.clone(), space.clone()), 0..4);
        let object = members.prop_map(|members| {
            let members: Vec<String> = members
                .into_iter()
                .enumerate()
                .map(|(index, (name, value, space))| format!("{space}\"k{index}-{name}\"{space}:{value}{space}"))
                .collect();
            format!("{{{}}}", members.join(","))
        });
        let array = vec((inner, space.clone()), 0..4).prop_map(|items| {
            let items: Vec<String> = items.into_iter().map(|(value, space)| format!("{space}{value}{space}")).collect();
            format!("[{}]", items.join(","))
        });
        prop_oneof![object, array]
    })
}

fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|id| id.to_string()),
        any::<String>().prop_map(|id| Value::from(id).to_string()),
        Just("0".to_owned()),
        Just("1.0".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("\"\\u0031\"".to_owned()),
    ]
}

/// The names in the order of their places.
fn request(order: usize, id: &str, arguments: &str, token: &str, other: &str) -> String {
    let params =
        format!(r#"{{"x":{other}, "arguments" : {arguments},"_meta":{{"y":{other},"progressToken":{token}}} }}"#);
    let mut members = [
        "\"jsonrpc\":\"2.0\"".to_owned(),
        format!("\"id\": {id}"),
        "\"method\":\"tools/call\"".to_owned(),
        format!("\"params\":{params}"),
        format!("\"extra\":{other}"),
    ];
    members.rotate_left(order);
    format!("\n{{{}}} ", members.join(" ,"))
}

proptest! {
    #[test]
    fn what_is_translated_and_back_is_what_it_was(
        order in 0_usize..5, id in any_id(), arguments in any_json(), token in any_id(), other in any_json(),
    ) {
        let text = request(order, &id, &arguments, &token, &other);
        let message = Message::read(Bytes::from(text.clone())).unwrap();
        let envelope = Envelope {
            capabilities: r#"{"roots":{}}"#, client: r#"{"name":"a"}"#, log_level: Some("info"),
            answers: Some(r#"{"a":{}}"#), state: Some("\"s\""),
        };
        let newer = Message::read(translate::newer_request(&message, &envelope).unwrap().into()).unwrap();
        prop_assert_eq!(newer.id(), Some(id.as_str()));
        prop_assert_eq!(newer.param(Param::Arguments), Some(arguments.as_str()));
        prop_assert_eq!(newer.meta(MetaKey::ProgressToken), Some(token.as_str()));
        for path in [&["extra"][..], &["params", "x"], &["params", "_meta", "y"]] {
            let kept = json::find(newer.as_str(), path).unwrap().unwrap();
            prop_assert_eq!(kept.of(newer.as_str()), other.as_str());
        }
        prop_assert_eq!(translate::older_request(&newer).unwrap(), text);
    }

    #[test]
    fn a_result_that_is_translated_and_back_is_what_it_was(
        content in any_json(), other in any_json(), revision in 0_usize..5,
        method in prop_oneof![Just("tools/call"), Just("resources/read"), Just("prompts/get"), Just("x/y")],
    ) {
        let result = format!(r#" {{"structuredContent" : {{"a":{other}}},"content":[ {{"type":"text","x":{content}}} ] }}"#);
        let newer = translate::newer_result(method, &result, Some(r#"{"name":"s"}"#)).unwrap();
        prop_assert_eq!(translate::outcome(&newer).unwrap(), Outcome::Complete);
        prop_assert_eq!(translate::older_result(method, &newer, Revision::ALL[revision]).unwrap(), result);
    }

    #[test]
    fn a_message_keeps_its_bytes_and_its_parts_are_where_it_says(
        order in 0_usize..5, id in any_id(), arguments in any_json(), token in any_id(), other in any_json(),
    ) {
        let text = request(order, &id, &arguments, &token, &other);
        let message = Message::read(Bytes::from(text.clone())).unwrap();
        prop_assert_eq!(message.text(), &text);
        prop_assert_eq!(message.kind(), Kind::Request);
        prop_assert_eq!(message.id(), Some(id.as_str()));
        prop_assert_eq!(message.param(Param::Arguments), Some(arguments.as_str()));
        prop_assert_eq!(message.meta(MetaKey::ProgressToken), Some(token.as_str()));

        let mut changes = [
            (message.id_span().unwrap(), &b"7"[..]),
            (message.meta_span(MetaKey::ProgressToken).unwrap(), &b"\"t\""[..]),
        ];
        changes.sort_by_key(|(span, _)| span.start);
        let changed = message.with(changes);
        prop_assert_eq!(&changed, &request(order, "7", &arguments, "\"t\"", &other));
        let back = Message::read(changed).unwrap();
        let mut changes = [
            (back.id_span().unwrap(), id.as_bytes()),
            (back.meta_span(MetaKey::ProgressToken).unwrap(), token.as_bytes()),
        ];
        changes.sort_by_key(|(span, _)| span.start);
        prop_assert_eq!(back.with(changes), text);
    }

    #[test]
    fn an_edit_changes_one_member(document in any_json(), value in any_json()) {
        let text = format!("{{\"a\":{document},\"b\":{{\"c\":{document}}}}}");
        let set = json::set(&text, &["b", "c"], &value).unwrap();
        prop_assert_eq!(&set, &format!("{{\"a\":{document},\"b\":{{\"c\":{value}}}}}"));
        let added = json::set(&text, &["b", "d", "e"], &value).unwrap();
        prop_assert_eq!(&added, &format!("{{\"a\":{document},\"b\":{{\"c\":{document},\"d\":{{\"e\":{value}}}}}}}"));
        prop_assert_eq!(json::remove(&text, &["a"]).unwrap().unwrap(), format!("{{\"b\":{{\"c\":{document}}}}}"));
        prop_assert_eq!(json::remove(&text, &["b", "c"]).unwrap().unwrap(), format!("{{\"a\":{document},\"b\":{{}}}}"));
        let Span { start, end } = json::find(&text, &["a"]).unwrap().unwrap();
        prop_assert_eq!(&text[start..end], document);
    }

    #[test]
    fn only_json_is_json(text in any::<String>(), json in any_json(), cut in any::<prop::sample::Index>()) {
        let reads = |text: &str| json::find(&format!("{{\"a\":{text}}}"), &["a"]).is_ok();
        let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(&format!("{{\"a\":{text}}}")).is_ok();
        prop_assert!(reads(&json));
        for text in [text.as_str(), json.get(..cut.index(json.len())).unwrap_or_default()] {
            prop_assert_eq!(reads(text), is_json(text), "{}", text);
        }
    }

    #[test]
    fn a_stream_is_cut_the_same_way_however_it_arrives(
        lines in vec((prop_oneof![Just("data: x"), Just("id: 1"), Just(": c"), Just(""), Just("data:\u{a0}"), Just("event: endpoint")],
            prop_oneof![Just("\n"), Just("\r"), Just("\r\n")]), 0..24),
        sizes in vec(1_usize..9, 1..20),
    ) {
        let text: String = lines.iter().flat_map(|(line, end)| [*line, *end]).collect();
        let whole = pieces(text.as_bytes(), &[text.len().max(1)]);
        prop_assert_eq!(&pieces(text.as_bytes(), &sizes), &whole);
        prop_assert_eq!(whole.concat(), text.as_bytes());
    }

    #[test]
    fn what_is_put_into_an_event_comes_out(data in any::<String>(), id in "[!-~]{0,9}") {
        let text = Frame { id: Some(&id), name: Some("message"), data: data.as_bytes(), retry: None }.encode();
        let mut splitter = Splitter::new(usize::MAX);
        splitter.push(&text);
        let Some(Piece::Event(event)) = splitter.next_piece() else { panic!("no event") };
        prop_assert_eq!(&event, &text);
        let expected = data.replace("\r\n", "\n").replace('\r', "\n");
        let event = Event::read(&event);
        prop_assert_eq!(event.data.as_deref(), Some(expected.as_bytes()));
        prop_assert_eq!(event.id, Some(id.as_bytes()));
    }
}

/// The pieces of a stream that arrives in chunks of these sizes, and what is left of it.
fn pieces(text: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(1 << 20);
    let mut pieces = Vec::new();
    let (mut rest, mut sizes) = (text, sizes.iter().cycle());
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(sizes.next().unwrap().min(&rest.len()).to_owned());
        rest = after;
        splitter.push(chunk);
        while let Some(Piece::Event(event) | Piece::Part(event)) = splitter.next_piece() {
            pieces.push(event.to_vec());
        }
    }
    pieces.extend(splitter.finish().map(|rest| rest.to_vec()));
    pieces
}
