//! What `kubectl get -o jsonpath` (v1.36) printed, and what the server put into the cells of printer columns.

use proptest::prelude::*;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::*;

/// In the order that the server keeps.
fn object() -> Value {
    let mut object = json!({ "metadata": { "name": "t" }, "spec": {
        "s": "text", "i": 7, "n": 1.5, "b": true, "o": { "x": 1, "y": "z", "a": [1, 2] }, "l": ["p", "q", "r"],
        "l2": [], "l3": [{ "a": 1 }, { "b": 2 }, { "a": 3 }], "nums": [1, 2, 3], "nul": null, "a.b": "dotted",
        "sp ace": "sp", "a-b": "dash", "a/b": "slash", "é": "acute", "": "empty",
        "c": [
            { "type": "Ready", "status": "True", "n": 2, "flag": true, "sub": [{ "k": "v", "z": 1 }] },
            { "type": "Other", "status": "False", "n": 1, "flag": false, "sub": [{ "k": "w" }, { "k": "v" }] },
        ],
    } });
    object.sort_all_objects();
    object
}

/// The results, or the error, as kubectl prints them.
fn printed(path: &str) -> String {
    let object = object();
    let path = match JsonPath::compile(path) {
        Ok(path) => path,
        Err(error) => return format!("! {error}"),
    };
    match path.try_evaluate(&object) {
        Ok(values) => {
            let text = |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            values.iter().map(text).collect::<Vec<_>>().join(" ")
        }
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn paths_lead_where_kubectl_says() {
    let table = [
        (".spec.l[0]", "p"),
        (".spec.l[-1]", "r"),
        (".spec.l[9]", "! array index out of bounds: index 9, length 3"),
        (".spec.l[-9]", "! array index out of bounds: index -6, length 3"),
        (".spec.l[0:2]", "p q"),
        (".spec.l[1:]", "q r"),
        (".spec.l[:2]", "p q"),
        (".spec.l[:]", "p q r"),
        (".spec.l[-2:]", "q r"),
        (".spec.l[:-1]", "p q"),
        (".spec.l[::2]", "p r"),
        (".spec.l[::-1]", "! step must be > 0"),
        (".spec.l[0:2:0]", "! step must be > 0"),
        (".spec.l[2:0]", "! starting index 2 is greater than ending index 0"),
        (".spec.l[0:9]", "! array index out of bounds: index 8, length 3"),
        (".spec.l[9:]", "! array index out of bounds: index 9, length 3"),
        (".spec.l[-9:]", "! array index out of bounds: index -6, length 3"),
        (".spec.l[0,2]", "p r"),
        (".spec.l[0 , 1]", "p q"),
        (".spec.l[*]", "p q r"),
        (".spec.l.*", "p q r"),
        (".spec.l[]", "p"),
        (".spec.l[01]", "q"),
        (".spec['s','i']", "text 7"),
        (".spec['s']", "text"),
        (".spec[\"s\"]", "! invalid array index \"s\""),
        (".spec[s]", "! invalid array index s"),
        (".spec['a.b']", ""),
        (".spec['a\\.b']", "dotted"),
        (".spec.a\\.b", "dotted"),
        (".spec.sp\\ ace", "sp"),
        (".spec.a-b", "dash"),
        (".spec.a/b", "slash"),
        (".spec.é", "acute"),
        (".spec['']", "empty"),
        (".spec.nope", ""),
        (".spec.nope.x", ""),
        (".spec.s.x", ""),
        (".spec.l.x", ""),
        (".spec.s[0]", "! string is not array or slice"),
        (".spec.o[0]", "! map[string]interface {} is not array or slice"),
        (".spec.o[*]", "! map[string]interface {} is not array or slice"),
        ("..type", "Ready Other"),
        (".spec..n", "1.5 2 1"),
        (".spec.c[0]..n", "2"),
        ("..c[0].n", "2"),
        ("..nope", ""),
        (".spec.nul", "null"),
        (".spec.nul.x", ""),
        (".spec.l2", "[]"),
        (".spec.l2[0]", "! array index out of bounds: index 0, length 0"),
        (".spec.l2[*]", ""),
        (".spec.l3[*].a", "1 3"),
        (".spec.l3[1:].a", "3"),
        (".spec.o.*", "[1,2] 1 z"),
        (".spec['o'].x", "1"),
        (".spec['o']['x']", "1"),
        (".spec.c[*]['n','type']", "2 1 Ready Other"),
        (".spec .s", "text"),
        ("{.spec.s}", "text"),
        ("$.spec.s", "text"),
        ("@.spec.s", "text"),
        (".", ""),
        (".spec.l.[0]", ""),
    ];
    for (path, expected) in table {
        assert_eq!(printed(path), expected, "{path}");
    }
}

#[test]
fn filters_select_what_kubectl_says() {
    let table = [
        ("@.type=='Ready'", "Ready"),
        ("@.type==\"Ready\"", "Ready"),
        (" @.type == 'Ready' ", "Ready"),
        ("@['type']=='Ready'", "Ready"),
        ("@.type=='Nope'", ""),
        ("@.type=='a)b'", ""),
        ("@.n>1", "Ready"),
        ("@.n>=1", "Ready Other"),
        ("@.n<2", "Other"),
        ("@.n<=2", "Ready Other"),
        ("@.n!=2", "Other"),
        ("@.n==2", "Ready"),
        ("@.n==-1", ""),
        ("@.n==2.0", "! incompatible types for comparison"),
        ("@.n=='2'", "! incompatible types for comparison"),
        ("@.n", "Ready Other"),
        ("@.zz", ""),
        ("@.flag", "Ready Other"),
        ("@.flag==true", "Ready"),
        ("@.flag==false", "Other"),
        ("@.zz==''", ""),
        ("@.zz!='x'", ""),
        ("@.type==@.status", ""),
        ("@.type<'Q'", "Other"),
        ("@.type>1", "! incompatible types for comparison"),
        ("@.sub[0].k=='v'", "Ready"),
        ("@.sub[*].k=='v'", "! can only compare one element at a time"),
        ("1==1", "Ready Other"),
        ("'a'=='a'", "Ready Other"),
        ("@.sub[?(@.k=='v')].z==1", "! unterminated filter"),
        ("@.type=='Ready' && @.n==2", "! unrecognized character in action: U+0026 '&'"),
        ("!@.n", "! unrecognized character in action: U+0021 '!'"),
    ];
    for (filter, expected) in table {
        assert_eq!(printed(&format!(".spec.c[?({filter})].type")), expected, "{filter}");
    }
    assert_eq!(printed(".spec.l[?(@=='q')]"), "q");
    assert_eq!(printed(".spec.nums[?(@>1)]"), "2 3");
}

#[test]
fn texts_that_are_no_paths() {
    for (path, error) in [
        (".spec.l[a]", "invalid array index a"),
        (".spec.l[1:x]", "invalid array index 1:x"),
        (".spec.l[1:2:3:4]", "invalid array index 1:2:3:4"),
        (".spec.l[+1]", "invalid array index +1"),
        (".spec.l[1.5]", "invalid array index 1.5"),
        (".spec.l[ 0 ]", "invalid array index  0 "),
        (".spec.l[99999999999999999999]", "array index 99999999999999999999 is not a number"),
        (".spec.l[", "unterminated array"),
        (".spec['s", "unterminated array"),
        (".spec.l]", "unrecognized character in action: U+005D ']'"),
        (".spec[?(@.a)", "unclosed array expect ]"),
        (".spec[?(@.a]", "unterminated filter"),
        (".spec[?(", "unterminated filter"),
        (".spec[?@.n].type", "invalid array index ?@.n"),
        (".spec.a b", "unrecognized identifier b"),
        (". spec", "unrecognized identifier spec"),
        (".spec{.s}", "unrecognized character in action: U+007B '{'"),
        ("..*", "unrecognized character in action: U+002A '*'"),
        (".spec[' s']", "unrecognized identifier s"),
    ] {
        assert_eq!(JsonPath::compile(path).unwrap_err().to_string(), error, "{path}");
    }
}

#[test]
fn cells_hold_what_the_server_puts_there() {
    let object = json!({ "spec": { "s": "text", "i": 7, "f": 2.75, "b": true, "o": { "b": "<&>", "a": 1.0 }, "n": null,
                                   "big": 1e30, "neg": -1.9, "e": "", "l": ["x"] } });
    let cells = |name: &str| -> Vec<Value> {
        ["s", "i", "f", "b", "o", "n", "big", "neg", "e", "nope"]
            .iter()
            .map(|field| {
                let path = JsonPath::compile(&format!(".spec.{field}")).unwrap();
                cell(&object, &path, ColumnType::read(name).unwrap(), OffsetDateTime::UNIX_EPOCH)
            })
            .collect()
    };
    assert_eq!(
        Value::Array(cells("string")),
        json!([
            "text",
            "7",
            "2.75",
            "true",
            "{\"a\":1,\"b\":\"\\u003c\\u0026\\u003e\"}",
            "<no value>",
            "1e+30",
            "-1.9",
            "",
            null
        ])
    );
    assert_eq!(Value::Array(cells("integer")), json!([null, 7, 2, null, null, null, i64::MIN, -1, null, null]));
    assert_eq!(Value::Array(cells("number")), json!([null, 7, 2.75, null, null, null, 1e30, -1.9, null, null]));
    assert_eq!(Value::Array(cells("boolean")), json!([null, null, null, true, null, null, null, null, null, null]));
    assert_eq!(
        Value::Array(cells("date")),
        json!(["<invalid>", null, null, null, null, null, null, null, "<unknown>", null])
    );
    let several = JsonPath::compile(".spec['s','i']").unwrap();
    assert_eq!(cell(&object, &several, ColumnType::String, OffsetDateTime::UNIX_EPOCH), "text");
    let beyond = JsonPath::compile(".spec.l[9]").unwrap();
    assert_eq!(cell(&object, &beyond, ColumnType::String, OffsetDateTime::UNIX_EPOCH), Value::Null);
}

#[test]
fn a_path_cannot_multiply_its_results_without_end() {
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!({ "a": deep, "b": 1 });
    }
    let path = JsonPath::compile(&".".repeat(40)).unwrap();
    assert_eq!(path.try_evaluate(&deep), Err(EvaluationError::TooMany));
}

proptest! {
    #[test]
    fn no_text_brings_it_down(text in "\\PC{0,40}", path in "[.\\[\\]?(@'\"a-c0-2:,*=!<> {}$\\\\é-]{0,40}") {
        for text in [text, path] {
            if let Ok(path) = JsonPath::compile(&text) {
                let _ = path.evaluate(&object());
            }
        }
    }

    #[test]
    fn members_are_found_whatever_their_name(name in "[a-z.\\[\\] ]{1,8}") {
        let escaped: String = name.chars().flat_map(|character| ['\\', character]).collect();
        let path = JsonPath::compile(&format!(".{escaped}")).unwrap();
        let object = json!({ name: 1 });
        let expected = json!(1);
        prop_assert_eq!(path.evaluate(&object), vec![&expected]);
    }
}
