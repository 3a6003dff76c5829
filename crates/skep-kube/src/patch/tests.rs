//! What the real server (v1.36) answered to each patch; `tests/patch_on_control_plane.rs` asks it again.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::decode;

fn apply(kind: PatchKind, document: &[u8], object: &Value, schema: Option<&Schema>) -> Result<Value, PatchError> {
    super::apply(kind, document, object, schema).map(|patched| patched.object)
}

fn decode(document: &[u8]) -> Result<Value, decode::DecodeError> {
    decode::decode(document).map(|decoded| decoded.value)
}

fn config_map() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cm" }, "data": { "a": "1", "b": "2" } })
}

fn deployment() -> Value {
    json!({
        "metadata": { "name": "web", "labels": { "a": "b" }, "finalizers": ["x.io/a", "x.io/b"] },
        "spec": {
            "replicas": 0,
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%" } },
            "containers": [
                { "name": "one", "image": "i1", "args": ["a", "b"],
                  "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
                  "ports": [{ "containerPort": 80, "name": "h" }, { "containerPort": 53, "protocol": "UDP" }] },
                { "name": "two", "image": "i2" },
            ],
            "tolerations": [{ "key": "k", "operator": "Exists" }],
        },
    })
}

fn schema() -> Schema {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let keyed = |key: &str, items: Value| {
        json!({ "type": "array", "items": items,
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key })
    };
    let env = json!({ "type": "object", "properties": { "name": text(), "value": text() } });
    let port = json!({ "type": "object", "properties": {
        "containerPort": { "type": "integer", "format": "int32" }, "name": text(), "protocol": text() } });
    let container = json!({ "type": "object", "properties": {
        "name": text(), "image": text(), "args": { "type": "array", "items": text() },
        "env": keyed("name", env), "ports": keyed("containerPort", port) } });
    Schema::read(&json!({ "type": "object", "properties": {
        "metadata": { "type": "object", "properties": {
            "name": text(), "labels": texts(), "annotations": texts(),
            "finalizers": { "type": "array", "items": text(), "x-kubernetes-patch-strategy": "merge" } } },
        "spec": { "type": "object", "properties": {
            "replicas": { "type": "integer", "format": "int32" },
            "paused": { "type": "boolean" },
            "strategy": { "type": "object", "x-kubernetes-patch-strategy": "retainKeys", "properties": {
                "type": text(),
                "rollingUpdate": { "type": "object", "properties": {
                    "maxSurge": { "format": "int-or-string", "type": "string" } } } } },
            "containers": keyed("name", container.clone()),
            "initContainers": keyed("name", container),
            "nodeSelector": texts(),
            "tolerations": { "type": "array", "items": { "type": "object", "properties": {
                "key": text(), "operator": text() } } } } } } }))
}

/// The status code and what the caller sees of the error.
fn refused(kind: PatchKind, document: &[u8], object: &Value, schema: Option<&Schema>) -> (u16, String) {
    let error = ApiError::from(apply(kind, document, object, schema).unwrap_err());
    (error.reason.code(), error.message)
}

fn json_patch(document: &str) -> Value {
    apply(PatchKind::Json, document.as_bytes(), &config_map(), None).unwrap()["data"].clone()
}

#[test]
fn json_patches_that_the_real_server_accepts() {
    let table = [
        ("null", json!({ "a": "1", "b": "2" })),
        ("[]", json!({ "a": "1", "b": "2" })),
        (r#"[{"op":"test","path":"/data/zz","value":null}]"#, json!({ "a": "1", "b": "2" })),
        (r#"[{"op":"test","path":"/data/zz"}]"#, json!({ "a": "1", "b": "2" })),
        (r#"[{"op":"replace","path":"/data/zz","value":"1"}]"#, json!({ "a": "1", "b": "2", "zz": "1" })),
        (r#"[{"op":"replace","path":"/data/a"}]"#, json!({ "a": null, "b": "2" })),
        (r#"[{"op":"add","path":"/data/x~1y~0","value":"1"}]"#, json!({ "a": "1", "b": "2", "x/y~": "1" })),
        (r#"[{"op":"move","from":"/data/a","path":"/data/c"}]"#, json!({ "b": "2", "c": "1" })),
        (r#"[{"op":"copy","from":"/data/zz","path":"/data/c"}]"#, json!({ "a": "1", "b": "2", "c": null })),
        (r#"[{"op":"add","op":"remove","path":"/data/a","value":"1"}]"#, json!({ "b": "2" })),
        (r#"[{"op":"add","path":"data/c","value":"1"}]"#, json!({ "a": "1", "b": "2" })),
        (r#"[{"op":"remove","path":"/data"}]"#, json!(null)),
    ];
    for (document, data) in table {
        assert_eq!(json_patch(document), data, "{document}");
    }
    let all = format!(r#"[{{"op":"test","path":"","value":{}}}]"#, config_map());
    assert_eq!(json_patch(&all), json!({ "a": "1", "b": "2" }));
    let many = vec![json!({ "op": "test", "path": "/data/a", "value": "1" }); 10_000];
    assert_eq!(json_patch(&Value::Array(many).to_string()), json!({ "a": "1", "b": "2" }));
}

#[test]
fn lists_in_json_patches() {
    let list = |operation: Value| {
        let object = json!({ "l": ["a", "b"] });
        let patch = Value::Array(vec![operation]).to_string();
        apply(PatchKind::Json, patch.as_bytes(), &object, None).map(|object| object["l"].clone()).ok()
    };
    let add = |place: &str| list(json!({ "op": "add", "path": format!("/l/{place}"), "value": "z" }));
    for place in ["-", "2", "-1"] {
        assert_eq!(add(place), Some(json!(["a", "b", "z"])), "{place}");
    }
    for place in ["1", "01", "+1", "-2"] {
        assert_eq!(add(place), Some(json!(["a", "z", "b"])), "{place}");
    }
    for place in ["0", "-3"] {
        assert_eq!(add(place), Some(json!(["z", "a", "b"])), "{place}");
    }
    for place in ["3", "-4", "x", "", "9999999999999999999999", "-9223372036854775808"] {
        assert_eq!(add(place), None, "{place}");
    }
    let remove = |place: &str| list(json!({ "op": "remove", "path": format!("/l/{place}") }));
    assert_eq!(remove("-1"), Some(json!(["a"])));
    assert_eq!(remove("-2"), Some(json!(["b"])));
    for place in ["2", "-3", "-", "x"] {
        assert_eq!(remove(place), None, "{place}");
    }
    assert_eq!(list(json!({ "op": "replace", "path": "/l/-1", "value": "z" })), Some(json!(["a", "z"])));
    assert_eq!(list(json!({ "op": "replace", "path": "/l/-", "value": "z" })), None);
    assert_eq!(list(json!({ "op": "test", "path": "/l/5", "value": null })), None);
    assert_eq!(list(json!({ "op": "move", "from": "/l/0", "path": "/l/1" })), Some(json!(["b", "a"])));
    assert_eq!(list(json!({ "op": "move", "from": "/l/0", "path": "/l/2" })), None);
    assert_eq!(list(json!({ "op": "copy", "from": "/l/5", "path": "/l/-" })), None);
}

#[test]
fn json_patches_that_the_real_server_refuses() {
    let rejected = "the server rejected our request due to an error in our request";
    for document in [
        "[null]",
        "[{}]",
        r#"[{"op":"test","path":"/data/a","value":"2"}]"#,
        r#"[{"op":"test","path":"/data/a"}]"#,
        r#"[{"op":"test","path":"/q/zz","value":null}]"#,
        r#"[{"op":"test","path":"","value":{}}]"#,
        r#"[{"op":"remove","path":"/data/zz"}]"#,
        r#"[{"op":"remove","path":"data/a"}]"#,
        r#"[{"op":"remove","path":""}]"#,
        r#"[{"op":"remove","path":"/"}]"#,
        r#"[{"op":"replace","path":"/q/zz","value":"1"}]"#,
        r#"[{"op":"replace","path":"","value":5}]"#,
        r#"[{"op":"replace","path":"","value":null}]"#,
        r#"[{"op":"add","path":"/q/zz","value":"1"}]"#,
        r#"[{"op":"add","path":"","value":{}}]"#,
        r#"[{"op":"add","path":"x","value":"1"}]"#,
        r#"[{"op":"add","path":"/data/a/b","value":"1"}]"#,
        r#"[{"op":"add","value":"1"}]"#,
        r#"[{"op":"move","from":"/data","path":"/data/c"}]"#,
        r#"[{"op":"move","from":"","path":"/data/c"}]"#,
        r#"[{"op":"copy","from":"","path":"/data/c"}]"#,
        r#"[{"op":"copy","path":"/data/c"}]"#,
        r#"[{"op":"frob","path":"/data/c"}]"#,
        r#"[{"OP":"add","Path":"/data/c","value":"1"}]"#,
    ] {
        let answer = refused(PatchKind::Json, document.as_bytes(), &config_map(), None);
        assert_eq!(answer, (422, rejected.to_owned()), "{document}");
    }
    let error = ApiError::from(PatchError::Rejected);
    assert_eq!(error.status()["details"], json!({}));

    let decoding = |document: &str, problem: &str| {
        let answer = refused(PatchKind::Json, document.as_bytes(), &config_map(), None);
        assert_eq!(answer, (400, format!("error decoding patch: {problem}")), "{document}");
    };
    decoding("", "unexpected end of JSON input");
    decoding("{}", "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp");
    decoding("5", "json: cannot unmarshal number into Go value of type []handlers.jsonPatchOp");
    decoding("[[]]", "json: cannot unmarshal array into Go value of type handlers.jsonPatchOp");
    decoding(
        r#"[{"op":"add","path":5}]"#,
        "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
    );
    let too_many = Value::Array(vec![json!({}); 10_001]).to_string();
    assert_eq!(
        refused(PatchKind::Json, too_many.as_bytes(), &config_map(), None),
        (
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001".to_owned()
        )
    );
    let (code, message) = refused(PatchKind::Json, br#"[{"op":"replace","path":"","value":[]}]"#, &config_map(), None);
    assert_eq!(code, 422);
    assert!(
        message
            .starts_with(" \"\" is invalid: patch: Invalid value: \"[]\": couldn't get version/kind; json parse error"),
        "{message}"
    );
}

#[test]
fn copies_cannot_grow_without_end() {
    let doubling = |times: usize| {
        let mut operations = vec![json!({ "op": "add", "path": "/data/x", "value": ["x".repeat(100)] })];
        operations.extend(vec![json!({ "op": "copy", "from": "/data/x", "path": "/data/x/-" }); times]);
        apply(PatchKind::Json, Value::Array(operations).to_string().as_bytes(), &config_map(), None)
    };
    assert!(doubling(12).is_ok());
    assert_eq!(doubling(30), Err(PatchError::Rejected));
    let copies = |count: usize| {
        let mut operations = vec![json!({ "op": "add", "path": "/data/x", "value": "x".repeat(1000) })];
        let copy = |number| json!({ "op": "copy", "from": "/data/x", "path": format!("/data/y{number}") });
        operations.extend((0..count).map(copy));
        apply(PatchKind::Json, Value::Array(operations).to_string().as_bytes(), &config_map(), None)
    };
    assert!(copies(3000).is_ok());
    assert_eq!(copies(3200), Err(PatchError::Rejected));
}

#[test]
fn operations_cannot_pile_up_levels_without_end() {
    let mut operations = Vec::new();
    let mut place = "/data/x".to_owned();
    for _ in 0..200 {
        operations.push(json!({ "op": "add", "path": place, "value": {} }));
        place.push_str("/x");
    }
    let patch = Value::Array(operations).to_string();
    assert_eq!(apply(PatchKind::Json, patch.as_bytes(), &config_map(), None), Err(PatchError::Rejected));
}

#[test]
fn merge_patches() {
    let merged = |document: &str| apply(PatchKind::Merge, document.as_bytes(), &config_map(), None).unwrap();
    assert_eq!(merged("{}"), config_map());
    assert_eq!(merged(r#"{"data":null}"#).get("data"), None);
    assert_eq!(merged(r#"{"data":{"a":null,"c":"3","zz":null}}"#)["data"], json!({ "b": "2", "c": "3" }));
    assert_eq!(merged(r#"{"data":{"a":"x"},"data":{"b":"y"}}"#)["data"], json!({ "a": "1", "b": "y" }));
    assert_eq!(
        merged(r#"{"spec":{"o":{"a":null,"b":{"c":null}},"l":[{"a":null,"b":[{"c":null}]},null,[null,{"x":null}]]}}"#)
            ["spec"],
        json!({ "o": { "b": {} }, "l": [{ "b": [{}] }, null, [null, {}]] })
    );
    let refused = |document: &str| refused(PatchKind::Merge, document.as_bytes(), &config_map(), None);
    assert_eq!(refused("null"), (400, "Invalid JSON Patch".to_owned()));
    let wrong = |kind: &str| {
        (
            400,
            format!(
                "error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            ),
        )
    };
    assert_eq!(refused("[]"), wrong("array"));
    assert_eq!(refused("true"), wrong("bool"));
    assert_eq!(refused("{} x"), (400, "error decoding patch: invalid character 'x' after top-level value".to_owned()));
}

fn strategic(patch: &Value) -> Value {
    apply(PatchKind::Strategic, patch.to_string().as_bytes(), &deployment(), Some(&schema())).unwrap()
}

fn strategic_refused(patch: &Value) -> (u16, String) {
    refused(PatchKind::Strategic, patch.to_string().as_bytes(), &deployment(), Some(&schema()))
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap_or_default()).collect()
}

#[test]
fn strategic_patches_merge_lists_by_key() {
    let containers =
        |patch: Value| strategic(&json!({ "spec": { "containers": patch } }))["spec"]["containers"].clone();
    let one = containers(json!([{ "name": "one", "image": "new" }]));
    assert_eq!(
        (&one[0]["image"], &one[0]["args"], names(&one)),
        (&json!("new"), &json!(["a", "b"]), vec!["one", "two"])
    );
    assert_eq!(names(&containers(json!([{ "name": "three", "image": "n" }]))), ["three", "one", "two"]);
    assert_eq!(names(&containers(json!([{ "name": "two", "$patch": "delete" }]))), ["one"]);
    assert_eq!(names(&containers(json!([{ "name": "nine", "$patch": "delete" }]))), ["one", "two"]);
    assert_eq!(containers(json!([{ "name": "z" }, { "$patch": "replace" }])), json!([{ "name": "z" }]));
    assert_eq!(containers(json!([{ "$patch": "replace", "name": "one" }])), json!([]));
    assert_eq!(names(&containers(json!([]))), ["one", "two"]);
    assert_eq!(containers(json!([{ "name": "new", "image": "x" }, { "name": "new", "image": "y" }]))[0]["image"], "y");
    let env = containers(json!([{ "name": "one", "env": [{ "name": "A", "value": "9" }, { "name": "C" }] }]));
    assert_eq!(names(&env[0]["env"]), ["A", "C", "B"]);
    let args = containers(json!([{ "name": "one", "$deleteFromPrimitiveList/args": ["a"] }]));
    assert_eq!(args[0]["args"], json!(["b"]));
    let ports = containers(json!([{ "name": "one", "ports": [{ "containerPort": 80.0, "name": "x" }] }]));
    assert_eq!(names(&ports[0]["ports"]), ["x", "h", ""]);
    assert_eq!(names(&containers(json!([{ "name": null, "image": "n" }]))), ["", "one", "two"]);
}

#[test]
fn strategic_patches_keep_or_set_the_order() {
    let ordered = |order: Value, patch: Value| {
        let patch = json!({ "spec": { "$setElementOrder/containers": order, "containers": patch } });
        strategic(&patch)["spec"]["containers"].clone()
    };
    let name = |name: &str| json!({ "name": name });
    let only = strategic(&json!({ "spec": { "$setElementOrder/containers": [name("two"), name("one")] } }));
    assert_eq!(names(&only["spec"]["containers"]), ["two", "one"]);
    let table: [(Value, Value, &[&str]); 5] = [
        (json!([name("two"), name("one")]), json!([name("one")]), &["two", "one"]),
        (json!([name("two")]), json!([name("two")]), &["one", "two"]),
        (json!([name("three"), name("two"), name("one")]), json!([name("three")]), &["three", "two", "one"]),
        (json!([name("two"), name("three")]), json!([name("three")]), &["one", "two", "three"]),
        (json!([name("two"), name("one")]), json!([]), &["two", "one"]),
    ];
    for (order, patch, expected) in table {
        assert_eq!(names(&ordered(order.clone(), patch)), expected, "{order}");
    }
    let metadata = |patch: Value| strategic(&json!({ "metadata": patch }))["metadata"]["finalizers"].clone();
    assert_eq!(metadata(json!({ "finalizers": ["x.io/c"] })), json!(["x.io/c", "x.io/a", "x.io/b"]));
    assert_eq!(
        metadata(json!({ "finalizers": ["x.io/c", "x.io/c", "x.io/a"] })),
        json!(["x.io/c", "x.io/a", "x.io/b"])
    );
    let delete_and_add = json!({ "$deleteFromPrimitiveList/finalizers": ["x.io/a"], "finalizers": ["x.io/d"] });
    assert_eq!(metadata(delete_and_add), json!(["x.io/d", "x.io/b"]));
    assert_eq!(metadata(json!({ "$deleteFromPrimitiveList/finalizers": 5 })), json!(["x.io/a", "x.io/b"]));
    assert_eq!(metadata(json!({ "$deleteFromPrimitiveList/finalizers": null })), json!(null));
    let set = json!({ "$setElementOrder/finalizers": ["x.io/b", "x.io/c", "x.io/a"], "finalizers": ["x.io/c"] });
    assert_eq!(metadata(set), json!(["x.io/b", "x.io/c", "x.io/a"]));
}

#[test]
fn strategic_patches_merge_maps() {
    let labels = |patch: Value| strategic(&json!({ "metadata": { "labels": patch } }))["metadata"]["labels"].clone();
    assert_eq!(labels(json!({ "q": "r", "a": null })), json!({ "q": "r" }));
    assert_eq!(labels(json!({ "$patch": "replace", "q": "r" })), json!({ "q": "r" }));
    assert_eq!(labels(json!({ "$patch": "delete", "q": "r" })), json!({}));
    assert_eq!(labels(json!({ "$retainKeys": ["b"], "b": "c" })), json!({ "b": "c" }));
    let strategy = |patch: Value| strategic(&json!({ "spec": { "strategy": patch } }))["spec"]["strategy"].clone();
    assert_eq!(strategy(json!({ "$retainKeys": ["type"], "type": "Recreate" })), json!({ "type": "Recreate" }));
    assert_eq!(
        strategy(json!({ "$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": null })),
        json!({ "type": "Recreate" })
    );
    // A map that is not there yet: directives make it vanish, nulls vanish from it.
    let annotations =
        |patch: Value| strategic(&json!({ "metadata": { "annotations": patch } }))["metadata"]["annotations"].clone();
    assert_eq!(annotations(json!({ "q": "r", "n": null })), json!({ "q": "r" }));
    assert_eq!(annotations(json!({ "q": "r", "$patch": "bogus" })), json!(null));
    let inits = strategic(&json!({ "spec": { "initContainers": [
        { "name": "i", "env": [{ "name": "E", "value": null }, { "name": "F", "$patch": "delete" }] },
        { "name": "j", "$patch": "merge" } ] } }));
    assert_eq!(inits["spec"]["initContainers"], json!([{ "name": "i", "env": [{ "name": "E" }] }]));
    let tolerations = strategic(&json!({ "spec": { "tolerations": [{ "key": "z" }] } }));
    assert_eq!(tolerations["spec"]["tolerations"], json!([{ "key": "z" }]));
}

#[test]
fn directives_that_make_no_sense() {
    let metadata = |patch: Value| json!({ "metadata": patch });
    let containers = |patch: Value| json!({ "spec": { "containers": patch } });
    let lists = "list element types are not identical: [[x.io/a x.io/b]";
    let table: Vec<(Value, u16, String)> = vec![
        (
            containers(json!([{ "image": "n" }])),
            500,
            "map: map[image:n] does not contain declared merge key: name".into(),
        ),
        (
            containers(json!([{ "$patch": "delete" }])),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name".into(),
        ),
        (
            containers(json!([{ "$patch": "merge", "name": "one" }])),
            500,
            "merging lists cannot yet be specified in the patch".into(),
        ),
        (
            containers(json!([{ "$patch": "bogus", "name": "one" }])),
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:one]".into(),
        ),
        (
            containers(json!([{ "$patch": 5, "name": "one" }])),
            500,
            "unknown patch type: %!s(int64=5) in map: map[$patch:5 name:one]".into(),
        ),
        (json!({ "$patch": "bogus" }), 500, "unknown patch type: bogus in map: map[$patch:bogus]".into()),
        (
            metadata(json!({ "labels": { "$patch": null } })),
            500,
            "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]".into(),
        ),
        (metadata(json!({ "finalizers": [5] })), 500, format!("{lists} [5]]")),
        (metadata(json!({ "finalizers": ["x.io/c", { "a": 1 }] })), 500, format!("{lists} [x.io/c map[a:1]]]")),
        (metadata(json!({ "finalizers": [null] })), 500, format!("{lists} [<nil>]]")),
        (metadata(json!({ "$deleteFromPrimitiveList/finalizers": [{ "a": 1 }] })), 500, format!("{lists} [map[a:1]]]")),
    ];
    for (patch, code, message) in table {
        assert_eq!(strategic_refused(&patch), (code, message), "{patch}");
    }
}

#[test]
fn directives_about_order_and_keys_that_make_no_sense() {
    let metadata = |patch: Value| json!({ "metadata": patch });
    let spec = |patch: Value| json!({ "spec": patch });
    let table: Vec<(Value, u16, String)> = vec![
        (metadata(json!({ "$deleteFromPrimitiveList": ["a"] })), 400, "invalid patch format of primitive list".into()),
        (spec(json!({ "$setElementOrder": [] })), 400, "invalid patch format of setElementOrder list".into()),
        (
            spec(json!({ "$setElementOrder/containers": 5 })),
            500,
            "expected a []interface {}, but received a int64".into(),
        ),
        (
            spec(json!({ "$setElementOrder/containers": null })),
            500,
            "expected a []interface {}, but received a %!s(<nil>)".into(),
        ),
        (spec(json!({ "$setElementOrder/containers": [5] })), 500, "value for key 0 is not a map".into()),
        (
            spec(json!({ "$setElementOrder/containers": [{}] })),
            500,
            "map: map[] does not contain declared merge key: name".into(),
        ),
        (
            spec(json!({ "$setElementOrder/nodeSelector": [] })),
            500,
            "expected slice or array type, but got: struct".into(),
        ),
        (
            metadata(json!({ "labels": { "$setElementOrder/x": [] } })),
            500,
            "merging an object in json but data type is not struct, instead is: map".into(),
        ),
        (
            metadata(json!({ "$setElementOrder/finalizers": ["x.io/b"], "finalizers": ["x.io/c"] })),
            500,
            "The order in patch list:\n[x.io/c]\n doesn't match $setElementOrder list:\n[x.io/b]\n".into(),
        ),
        (
            spec(json!({ "strategy": { "$retainKeys": [], "type": "Recreate" } })),
            400,
            "invalid patch format of retainKeys".into(),
        ),
        (spec(json!({ "strategy": { "$retainKeys": null } })), 400, "invalid patch format of retainKeys".into()),
        (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}".into()),
    ];
    for (patch, code, message) in table {
        assert_eq!(strategic_refused(&patch), (code, message), "{patch}");
    }
    assert_eq!(ApiError::from(PatchError::Directive(String::new())).status().get("reason"), None);
}

#[test]
fn results_that_are_no_object_of_the_kind() {
    let table = [
        (json!({ "metadata": 5 }), "map[metadata:5]", "cannot restore struct from: int64"),
        (json!({ "metadata": { "labels": [] } }), "map[metadata:map[labels:[]]]", "cannot restore map from slice"),
        (
            json!({ "metadata": { "labels": { "q": 5, "a": null } } }),
            "map[metadata:map[labels:map[a:<nil> q:5]]]",
            "cannot convert int64 to string",
        ),
        (
            json!({ "metadata": { "labels": { "q": 1.5 } } }),
            "map[metadata:map[labels:map[q:1.5]]]",
            "unrecognized type: string",
        ),
        (
            json!({ "metadata": { "labels": { "a": { "x": null } } } }),
            "map[metadata:map[labels:map[a:map[]]]]",
            "unrecognized type: string",
        ),
        (
            json!({ "metadata": { "finalizers": "x" } }),
            "map[metadata:map[finalizers:x]]",
            "cannot restore slice from string",
        ),
        (json!({ "spec": { "replicas": "x" } }), "map[spec:map[replicas:x]]", "unrecognized type: int32"),
        (json!({ "spec": { "replicas": 1.5 } }), "map[spec:map[replicas:1.5]]", "cannot convert float64 to int32"),
        (json!({ "spec": { "paused": 1 } }), "map[spec:map[paused:1]]", "unrecognized type: bool"),
        (
            json!({ "spec": { "initContainers": [5] } }),
            "map[spec:map[initContainers:[5]]]",
            "cannot restore struct from: int64",
        ),
        (
            json!({ "spec": { "strategy": { "rollingUpdate": { "maxSurge": true } } } }),
            "map[spec:map[strategy:map[rollingUpdate:map[maxSurge:true]]]]",
            "json: cannot unmarshal bool into Go value of type int32",
        ),
        (
            json!({ "metadata": { "$setElementOrder/finalizers": ["x.io/b"], "labels": { "q": 5 } } }),
            "map[metadata:map[labels:map[q:5]]]",
            "cannot convert int64 to string",
        ),
        (
            json!({ "metadata": { "labels": { "q": [1e20, 1_000_000.0, 1e-5, 123_456_789.5, 100_000.5] } } }),
            "map[metadata:map[labels:map[q:[1e+20 1e+06 1e-05 1.234567895e+08 100000.5]]]]",
            "unrecognized type: string",
        ),
    ];
    for (patch, shown, problem) in table {
        let message = format!(" \"\" is invalid: patch: Invalid value: \"{shown}\": {problem}");
        assert_eq!(strategic_refused(&patch), (422, message), "{patch}");
    }
    let error = PatchError::Unconvertible { shown: "map[]".into(), problem: "no".into() };
    let cause = json!({ "reason": "FieldValueInvalid", "message": "Invalid value: \"map[]\": no", "field": "patch" });
    assert_eq!(ApiError::from(error).status()["details"], json!({ "causes": [cause] }));
}

#[test]
fn media_types() {
    assert_eq!(PatchKind::of_content_type("application/merge-patch+json; charset=utf-8"), Some(PatchKind::Merge));
    assert_eq!(PatchKind::of_content_type("APPLICATION/merge-patch+json"), None);
    assert_eq!(PatchKind::of_content_type("application/json"), None);
}

/// JSON values; names from a small set, so that patches meet what they change.
fn values(with_nulls: bool) -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(true)),
        (-3..3_i64).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
        Just(if with_nulls { Value::Null } else { json!(0.5) }),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(member_names(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn member_names() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => prop::sample::select(vec!["name", "metadata", "labels", "finalizers", "spec", "containers", "env"]),
        1 => prop::sample::select(vec!["$patch", "$retainKeys", "$setElementOrder/containers", "$setElementOrder/finalizers",
                                       "$deleteFromPrimitiveList/finalizers", "$setElementOrder", "op", "path"]),
    ]
    .prop_map(str::to_owned)
}

fn objects(with_nulls: bool) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(member_names(), values(with_nulls), 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// The merge patch that turns one object into another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let removed = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(name, value)| from.get(*name) != Some(value)).map(|(name, value)| {
        (name.clone(), from.get(name).map_or_else(|| value.clone(), |old| difference(old, value)))
    });
    Value::Object(removed.chain(changed).collect())
}

fn merged(patch: &Value, object: &Value) -> Value {
    apply(PatchKind::Merge, patch.to_string().as_bytes(), object, None).unwrap()
}

proptest! {
    #[test]
    fn a_difference_applied_gives_the_other(from in objects(false), to in objects(false)) {
        prop_assert_eq!(merged(&difference(&from, &to), &from), to);
    }

    #[test]
    fn a_merge_patch_applied_twice_is_applied_once(object in objects(false), patch in objects(true)) {
        let once = merged(&patch, &object);
        prop_assert_eq!(merged(&patch, &once), once);
    }

    #[test]
    fn an_empty_patch_changes_nothing(object in objects(false)) {
        for (kind, empty) in [(PatchKind::Merge, "{}"), (PatchKind::Strategic, "{}"), (PatchKind::Json, "[]")] {
            prop_assert_eq!(apply(kind, empty.as_bytes(), &object, None), Ok(object.clone()));
        }
    }

    #[test]
    fn no_bytes_bring_it_down(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for kind in [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic] {
            let _ = apply(kind, &bytes, &deployment(), Some(&schema()));
        }
    }

    #[test]
    fn no_document_brings_it_down(object in objects(true), patch in values(true)) {
        for kind in [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic] {
            let _ = apply(kind, patch.to_string().as_bytes(), &object, Some(&schema()));
        }
    }

    #[test]
    fn documents_are_read_as_others_read_them(value in values(true)) {
        prop_assert_eq!(decode(value.to_string().as_bytes()), Ok(value));
    }

    #[test]
    fn json_patches_never_bring_it_down(operations in prop::collection::vec(
        (prop::sample::select(vec!["add", "remove", "replace", "test", "move", "copy"]),
         "(/(metadata|labels|spec|-1|-|0|1|name)){0,4}", "(/(metadata|labels|spec|-1|-|0|1|name)){0,4}", values(true)), 0..12),
        object in objects(true))
    {
        let operations: Vec<Value> = operations.into_iter()
            .map(|(op, path, from, value)| json!({ "op": op, "path": path, "from": from, "value": value })).collect();
        let _ = apply(PatchKind::Json, Value::Array(operations).to_string().as_bytes(), &object, None);
    }
}
