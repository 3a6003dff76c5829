use serde_json::json;

use super::*;

#[test]
fn repeated_members_are_told_once_with_their_path() {
    let text = br#"{"spec":{"s":1,"s":2,"s":3,"l":[{"a":1,"a":2}]},"metadata":{},"metadata":{"x":1}}"#;
    let Decoded { value, duplicates, .. } = decode_object(text).unwrap();
    assert_eq!(
        duplicates,
        [r#"duplicate field "spec.s""#, r#"duplicate field "spec.l[0].a""#, r#"duplicate field "metadata""#]
    );
    assert_eq!(value["spec"]["s"], 3);
    assert_eq!(value["metadata"]["x"], 1);
}

/// Each line was tried on the real server.
#[test]
fn mistakes_are_told_in_the_words_of_the_real_server() {
    for (text, message) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        (r#"{"a":1}}"#, "invalid character '}' after top-level value"),
        ("{s:1}", "invalid character 's' looking for beginning of object key string"),
        ("{'s':1}", r"invalid character '\'' looking for beginning of object key string"),
        (r#"{"s" 1}"#, "invalid character '1' after object key"),
        (r#"{"s":1,}"#, "invalid character '}' looking for beginning of object key string"),
        (r#"{"s":1 "b":2}"#, r#"invalid character '"' after object key:value pair"#),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("[truX]", "invalid character 'X' in literal true (expecting 'e')"),
        ("[01]", "invalid character '1' after array element"),
        ("[1.]", "invalid character ']' after decimal point in numeric literal"),
        ("[1ex]", "invalid character 'x' in exponent of numeric literal"),
        ("[-x]", "invalid character 'x' in numeric literal"),
        ("[\"a\nb\"]", r"invalid character '\n' in string literal"),
        (r#"["\x"]"#, "invalid character 'x' in string escape code"),
        (r#"["\u12g4"]"#, r"invalid character 'g' in \u hexadecimal character escape"),
        ("[é]", "invalid character 'Ã' looking for beginning of value"),
        ("[\u{1}]", r"invalid character '\x01' looking for beginning of value"),
        ("[1e999]", "json: cannot unmarshal number 1e999 into Go value of type float64"),
    ] {
        assert_eq!(decode_object(text.as_bytes()).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn nesting_has_an_end() {
    let deep = |levels: usize| decode_object(format!("{}{}", "[".repeat(levels), "]".repeat(levels)).as_bytes());
    assert!(deep(MAX_DEPTH).is_ok());
    let too_deep = "invalid character '[' exceeded max depth";
    assert_eq!(deep(MAX_DEPTH + 1).unwrap_err().to_string(), too_deep);
    assert_eq!(decode_object("[".repeat(1_000_000).as_bytes()).unwrap_err().to_string(), too_deep);
}

#[test]
fn texts_and_numbers_are_read_as_go_reads_them() {
    let Decoded { value, numbers, .. } =
        decode_object(br#"["\ud83d\udc1d\ud800\n", 1.0, 1e3, 9223372036854775808, 0.5]"#).unwrap();
    assert_eq!(value[0], "🐝\u{fffd}\n");
    assert_eq!(value[1].to_string(), "1");
    assert_eq!(value[2], 1000);
    assert!(value[3].is_f64());
    assert_eq!(value[4], 0.5);
    assert_eq!((numbers.at("[1]"), numbers.at("[2]"), numbers.at("[0]")), (Some("1.0"), Some("1e3"), None));
}

#[test]
fn complaints_are_those_of_the_real_server() {
    let table: [(&[u8], &str); 27] = [
        (b"", "unexpected end of JSON input"),
        (b"  ", "unexpected end of JSON input"),
        (b"[", "unexpected end of JSON input"),
        (b"[\"a", "unexpected end of JSON input"),
        (b"nonsense", "invalid character 'o' in literal null (expecting 'u')"),
        (b"{\"a\":1} x", "invalid character 'x' after top-level value"),
        (b"\xff\xfe", "invalid character 'ÿ' looking for beginning of value"),
        (b"[{\"a\":\"/x\",}]", "invalid character '}' looking for beginning of object key string"),
        (b"[{\"a\":\"b\" \"c\":1}]", "invalid character '\"' after object key:value pair"),
        (b"[\"\x01\"]", "invalid character '\\x01' in string literal"),
        (b"[\"\\q\"]", "invalid character 'q' in string escape code"),
        (b"[01]", "invalid character '1' after array element"),
        (b"[-]", "invalid character ']' in numeric literal"),
        (b"[1.]", "invalid character ']' after decimal point in numeric literal"),
        (b"[1e]", "invalid character ']' in exponent of numeric literal"),
        (b"{a}", "invalid character 'a' looking for beginning of object key string"),
        (b"{'a'}", "invalid character '\\'' looking for beginning of object key string"),
        (b"[tru]", "invalid character ']' in literal true (expecting 'e')"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[\"\\uzz\"]", "invalid character 'z' in \\u hexadecimal character escape"),
        (b"[nul", "invalid character ' ' in literal null (expecting 'l')"),
        (b"{\"a\"}", "invalid character '}' after object key"),
        (b"{\"a\":}", "invalid character '}' looking for beginning of value"),
        (b"[,]", "invalid character ',' looking for beginning of value"),
        (b"]", "invalid character ']' looking for beginning of value"),
        (b"\"\\", "invalid character ' ' in string escape code"),
        (b"[1e400]", "json: cannot unmarshal number 1e400 into Go value of type float64"),
    ];
    for (document, complaint) in table {
        let error = decode(document).unwrap_err();
        assert_eq!(error.to_string(), complaint, "{}", String::from_utf8_lossy(document));
    }
    assert_eq!(
        decode("[".repeat(20_000).as_bytes()).unwrap_err().to_string(),
        "invalid character '[' exceeded max depth"
    );
}

#[test]
fn odd_but_valid_documents_are_read_as_go_reads_them() {
    assert_eq!(decode(br#"{"a":1,"a":2}"#).unwrap().value, json!({ "a": 2 }));
    assert_eq!(decode(br#""\ud800""#).unwrap().value, json!("\u{fffd}"));
    assert_eq!(decode(br#""\ud83d\ude00\ud83d\u0041""#).unwrap().value, json!("😀\u{fffd}A"));
    assert_eq!(decode(b"\"\xff\xfe\"").unwrap().value, json!("\u{fffd}\u{fffd}"));
    assert_eq!(decode(b"12345678901234567890").unwrap().value, json!(12_345_678_901_234_567_890.0));
    assert_eq!(decode(b" -0.5e1 ").unwrap().value, json!(-5.0));
}

proptest::proptest! {
    #[test]
    fn what_serde_reads_is_read_alike(text in r#"[\[\]{}",:0-9a-z\\ .eE+-]{0,60}"#) {
        let ours = decode_object(text.as_bytes());
        if let Ok(theirs) = serde_json::from_str::<Value>(&text) {
            proptest::prop_assert!(ours.is_ok(), "{theirs} {ours:?}");
        }
    }

    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
        let _ = decode_object(&bytes);
    }
}
