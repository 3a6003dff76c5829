//! What the real server (v1.36) was seen to do, one fact each. Where a test says that it is not measured, it is what
//! the documentation promises or what we decided.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::Schema;
use crate::status::ApiError;

const NOW: &str = "2026-01-02T03:04:05Z";
const LATER: &str = "2026-01-02T03:04:06Z";

fn schema() -> Schema {
    let text = json!({ "type": "string" });
    Schema::read(&json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "text": text,
            "number": { "type": "integer" },
            "labels": { "type": "object", "additionalProperties": text },
            "names": { "type": "array", "x-kubernetes-list-type": "set", "items": text },
            "byName": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": { "type": "object", "properties": { "name": text, "value": text } } },
            "items": { "type": "array", "items": text },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        } },
        "status": { "type": "object", "properties": { "phase": text } },
    } }))
}

/// An object with its schema, and everything that can be done to it.
struct Bench {
    schema: Schema,
    live: Option<Value>,
    now: &'static str,
}

impl Bench {
    fn new() -> Self {
        Self { schema: schema(), live: None, now: NOW }
    }

    fn with_target<T>(&self, act: impl FnOnce(&Target<'_>) -> T) -> T {
        act(&Target {
            schema: &self.schema,
            api_version: "example.com/v1",
            versions: &["example.com/v1", "example.com/v1beta1"],
            subresource: "",
            ownable: &Ownable::all_but(&["status"]),
            blank: &json!({}),
        })
    }

    fn try_apply(&mut self, manager: &str, force: bool, spec: &Value) -> Result<(), ApplyError> {
        let new =
            self.with_target(|target| apply(target, self.live.as_ref(), &object(spec), manager, force, self.now))?;
        self.live = Some(new);
        Ok(())
    }

    fn apply(&mut self, manager: &str, spec: &Value) -> &mut Self {
        self.try_apply(manager, false, spec).unwrap();
        self
    }

    fn update(&mut self, manager: &str, change: impl FnOnce(&mut Value)) -> &mut Self {
        let mut new = self.live.clone().unwrap_or_else(|| object(&json!({})));
        change(&mut new);
        self.with_target(|target| update(target, self.live.as_ref(), &mut new, manager, self.now));
        self.live = Some(new);
        self
    }

    fn spec(&self) -> Value {
        self.live.clone().unwrap()["spec"].clone()
    }

    /// Manager, operation, time and fields of every entry.
    fn owners(&self) -> Vec<(String, String, Option<String>, Value)> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let entries = self.live.clone().unwrap()["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .map(|entry| {
                let name = |name: &str| text(&entry[name]).unwrap_or_default();
                (name("manager"), name("operation"), text(&entry["time"]), entry["fieldsV1"].clone())
            })
            .collect()
    }

    fn fields_of(&self, manager: &str) -> Option<Value> {
        self.owners().into_iter().find(|owner| owner.0 == manager).map(|owner| owner.3)
    }
}

fn object(spec: &Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "a" }, "spec": spec })
}

#[test]
fn who_stops_applying_a_field_removes_it_unless_somebody_else_owns_it() {
    let mut bench = Bench::new();
    bench
        .apply("one", &json!({ "text": "a", "number": 1 }))
        .apply("two", &json!({ "text": "a" }))
        .apply("one", &json!({}));
    assert_eq!(bench.spec(), json!({ "text": "a" }));
    assert_eq!(bench.fields_of("one"), Some(json!({ "f:spec": {} })));
    assert_eq!(bench.fields_of("two"), Some(json!({ "f:spec": { "f:text": {} } })));
}

#[test]
fn an_owner_of_nothing_vanishes_and_takes_empty_structs_along() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "byName": [{ "name": "a" }] })).apply("one", &json!({ "byName": [] }));
    assert_eq!(bench.live.as_ref().unwrap().get("spec"), None);
    assert_eq!(bench.owners(), []);
}

#[test]
fn a_map_of_which_nothing_is_left_becomes_null() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "labels": { "a": "b" } })).apply("one", &json!({ "labels": {} }));
    assert_eq!(bench.spec(), json!({ "labels": null }));
}

#[test]
fn conflicts_name_everybody_and_force_takes_the_fields() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "text": "a" })).update("two", |new| new["spec"]["number"] = 1.into());
    let wanted = json!({ "text": "b", "number": 2 });
    let error = ApiError::from(bench.try_apply("three", false, &wanted).unwrap_err()).status();
    assert_eq!(
        error["message"],
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.text\n\
         conflicts with \"two\" using example.com/v1:\n- .spec.number"
    );
    assert_eq!((&error["code"], &error["reason"]), (&json!(409), &json!("Conflict")));
    assert_eq!(
        error["details"]["causes"][1],
        json!({ "reason": "FieldManagerConflict", "message": "conflict with \"two\" using example.com/v1",
            "field": ".spec.number" })
    );
    let error = bench.try_apply("three", false, &json!({ "text": "b" })).unwrap_err();
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.text");

    bench.try_apply("three", true, &wanted).unwrap();
    assert_eq!(bench.owners().len(), 1);
    assert_eq!(bench.fields_of("three"), Some(json!({ "f:spec": { "f:number": {}, "f:text": {} } })));
}

#[test]
fn applying_what_is_already_so_leaves_no_time() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "text": "a" }));
    bench.now = LATER;
    bench.apply("two", &json!({ "text": "a" })).apply("one", &json!({ "text": "a" }));
    let times: Vec<_> = bench.owners().into_iter().map(|owner| (owner.0, owner.2)).collect();
    assert_eq!(times, [("two".to_owned(), None), ("one".to_owned(), Some(NOW.to_owned()))]);
}

#[test]
fn an_update_owns_what_it_changes_and_only_then_has_a_new_time() {
    let mut bench = Bench::new();
    bench.update("one", |new| new["spec"] = json!({ "text": "a", "labels": { "a": "b" } }));
    assert_eq!(
        bench.fields_of("one"),
        Some(json!({ "f:spec": { ".": {}, "f:labels": { ".": {}, "f:a": {} }, "f:text": {} } }))
    );
    bench.now = LATER;
    bench.update("one", |_| {});
    assert_eq!(bench.owners()[0].2.as_deref(), Some(NOW));
    bench.update("two", |new| new["spec"]["labels"] = json!({ "c": "d" }));
    assert_eq!(bench.fields_of("one"), Some(json!({ "f:spec": { ".": {}, "f:labels": {}, "f:text": {} } })));
    assert_eq!(bench.fields_of("two"), Some(json!({ "f:spec": { "f:labels": { "f:c": {} } } })));
    bench.update("one", |new| new["spec"]["text"] = "b".into());
    assert_eq!(bench.owners()[0].2.as_deref(), Some(LATER));
}

#[test]
fn shared_items_follow_the_applied_order_and_others_keep_their_place() {
    let mut bench = Bench::new();
    bench.update("one", |new| new["spec"] = json!({ "names": ["x", "a", "y", "b", "z"] }));
    bench.apply("two", &json!({ "names": ["b", "n", "a"] }));
    assert_eq!(bench.spec()["names"], json!(["x", "y", "b", "z", "n", "a"]));
}

#[test]
fn one_empty_entry_resets_managed_fields_until_the_next_apply() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "text": "a" }));
    for without_effect in [json!([]), json!(null), json!([{}, {}]), json!([{ "manager": "x", "operation": "Other" }])] {
        bench.update("two", |new| new["metadata"]["managedFields"] = without_effect);
        assert_eq!(bench.owners().len(), 1);
    }
    bench.update("two", |new| new["metadata"]["managedFields"] = json!([{}]));
    bench.update("two", |new| new["spec"]["number"] = 1.into());
    assert_eq!(bench.owners(), []);
    bench.apply("one", &json!({ "text": "a" }));
    assert_eq!(
        bench.fields_of("before-first-apply"),
        Some(json!({ "f:spec": { ".": {}, "f:number": {}, "f:text": {} } }))
    );
}

// Measured for the version of the request and for an unknown one; not measured for another known version, nor for a
// time with an offset.
#[test]
fn managed_fields_of_a_request_count_but_not_those_of_unknown_versions() {
    let entry = |version: &str| {
        json!([{ "manager": "m", "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": { "f:text": {} } }, "time": "2020-01-01T01:00:00.5+01:00" }])
    };
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "text": "a" }));
    bench.update("two", |new| new["metadata"]["managedFields"] = entry("example.com/v1beta1"));
    assert_eq!(bench.owners()[0].2.as_deref(), Some("2020-01-01T00:00:00Z"));
    bench.update("two", |new| new["metadata"]["managedFields"] = entry("example.com/v0"));
    assert_eq!(bench.owners(), []);
}

#[test]
fn a_configuration_may_not_have_managed_fields() {
    let bench = Bench::new();
    let mut applied = object(&json!({}));
    applied["metadata"]["managedFields"] = json!([]);
    let error = bench.with_target(|target| apply(target, None, &applied, "one", false, NOW)).unwrap_err();
    assert_eq!(ApiError::from(error).status()["message"], "metadata.managedFields must be nil");
}

#[test]
fn what_does_not_fit_the_schema_is_refused_in_the_words_of_the_real_server() {
    let cases = [
        (json!({ "text": 1 }), ".spec.text: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({ "bogus": 1 }), ".spec.bogus: field not declared in schema"),
        (json!({ "names": ["a", "a"] }), ".spec.names: duplicate entries for key [=\"a\"]"),
        (
            json!({ "byName": [{ "name": "a" }, { "name": "a" }] }),
            ".spec.byName: duplicate entries for key [name=\"a\"]",
        ),
        (
            json!({ "byName": ["x", null] }),
            ".spec.byName: element 0: associative list with keys may not have non-map elements",
        ),
        (json!({ "names": [[]] }), ".spec.names: element 0: not supported: associative list with lists as elements"),
        (json!({ "number": "x" }), ".spec.number: expected numeric (int or float), got string"),
        (json!({ "labels": ["x", 1.5, true, null] }), ".spec.labels: expected map, got &{[x 1.5 true <nil>]}"),
        (json!({ "items": { "a": { "z": 1 } } }), ".spec.items: expected list, got &{map[a:map[z:1]]}"),
        (
            json!({ "text": { "a": "b", "c": [1, null, {}] } }),
            ".spec.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":\"b\", \
             \"c\":[]interface {}{1, interface {}(nil), map[string]interface {}{}}}}",
        ),
        (
            json!({ "byName": [{ "value": "a" }] }),
            ".spec.byName: element 0: associative list with keys has an element that omits all key fields [\"name\"] \
             (and doesn't have default values for any key fields)",
        ),
    ];
    for (spec, problem) in cases {
        let error = ApiError::from(Bench::new().try_apply("one", false, &spec).unwrap_err()).status();
        let message = format!("failed to create typed patch object (/a; example.com/v1, Kind=Thing): {problem}");
        assert_eq!(error["message"], message);
        assert_eq!((&error["code"], error.get("reason")), (&json!(500), None));
    }
}

#[test]
fn the_oldest_of_many_updates_are_merged() {
    let mut bench = Bench::new();
    bench.apply("zero", &json!({ "text": "a" }));
    for index in 0..13 {
        bench.update(&format!("manager{index:02}"), |new| new["spec"]["labels"][format!("k{index}")] = "v".into());
    }
    assert_eq!(bench.owners().len(), 11);
    assert_eq!(
        bench.fields_of("ancient-changes"),
        Some(json!({ "f:spec": { "f:labels": { ".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {} } } }))
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_client() {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut bench = Bench::new();
    bench.update("kubectl-client-side-apply", |new| {
        *new = object(&json!({ "text": "a", "number": 1 }));
        new["metadata"]["annotations"][ANNOTATION] = object(&json!({ "text": "a", "number": 2 })).to_string().into();
    });
    bench.try_apply("other", false, &json!({ "text": "b" })).unwrap_err();
    let error = bench.try_apply("kubectl", false, &json!({ "text": "b", "number": 3 })).unwrap_err();
    assert!(error.to_string().ends_with(".spec.number"), "{error}");
    bench.apply("kubectl", &json!({ "text": "<b>" }));
    assert_eq!(
        bench.live.unwrap()["metadata"]["annotations"][ANNOTATION],
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\"},\
         \"spec\":{\"text\":\"\\u003cb\\u003e\"}}\n"
    );
}

// Measured for an entry with items of an atomic list, not for a schema that changes.
#[test]
fn parts_of_what_has_become_atomic_become_the_whole() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "names": ["a"], "labels": { "a": "b" } }));
    bench.schema = Schema::read(&json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "names": { "type": "array", "items": { "type": "string" } },
        "labels": { "type": "object", "x-kubernetes-map-type": "atomic",
            "additionalProperties": { "type": "string" } },
        "number": { "type": "integer" },
    } } } }));
    bench.update("two", |new| new["spec"]["number"] = 1.into());
    assert_eq!(bench.fields_of("one"), Some(json!({ "f:spec": { "f:labels": {}, "f:names": {} } })));
}

// Not measured: validation keeps such objects out.
#[test]
fn an_object_that_does_not_fit_its_schema_loses_its_managed_fields() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "text": "a" })).update("two", |new| new["spec"]["text"] = json!({}));
    assert_eq!(bench.owners(), []);
}

// Ours: the limit is not the real server's.
#[test]
fn deep_objects_are_refused() {
    let mut deep = json!(1);
    for _ in 0..1000 {
        deep = json!({ "a": deep });
    }
    let mut spec = json!({});
    spec["free"] = deep;
    let error = Bench::new().try_apply("one", false, &spec).unwrap_err();
    assert!(error.to_string().ends_with("the object is nested too deeply"), "{error}");
    let mut bench = Bench::new();
    bench.update("one", |new| new["spec"] = spec);
    assert_eq!(bench.owners(), []);
}

#[test]
fn subresources_have_their_own_entries() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "text": "a", "number": 1 }));
    let live = bench.live.clone().unwrap();
    let write = |subresource: &str, ownable: &Ownable, now: &str| {
        let mut new = live.clone();
        new["spec"]["number"] = 2.into();
        new["status"] = json!({ "phase": "x" });
        bench.with_target(|target| {
            update(&Target { subresource, ownable, ..*target }, Some(&live), &mut new, "one", now);
        });
        new["metadata"]["managedFields"].clone()
    };
    let status = write("status", &Ownable::only(&["status"]), LATER);
    assert_eq!(status[0], live["metadata"]["managedFields"][0]);
    assert_eq!(
        status[1],
        json!({ "manager": "one", "operation": "Update", "subresource": "status", "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:status": { ".": {}, "f:phase": {} } }, "time": LATER })
    );
    let scale = write("scale", &Ownable::only(&["spec.number"]), "");
    assert_eq!(scale[0]["fieldsV1"], json!({ "f:spec": { "f:text": {} } }));
    assert_eq!(
        scale[1],
        json!({ "manager": "one", "operation": "Update", "subresource": "scale", "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:number": {} } } })
    );
}

// Not measured: none of the writes that were tried came to this.
#[test]
fn new_times_alone_are_taken_back() {
    let mut bench = Bench::new();
    bench.apply("one", &json!({ "text": "a" }));
    let live = bench.live.clone().unwrap();
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = LATER.into();
    let mut changed = new.clone();
    keep_times(&live, &mut new);
    assert_eq!(new, live);
    changed["spec"]["text"] = "b".into();
    let expected = changed.clone();
    keep_times(&live, &mut changed);
    assert_eq!(changed, expected);
}

fn any_json() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 15] = [
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "status",
        "name",
        "text",
        "labels",
        "names",
        "byName",
        "free",
        "managedFields",
        "annotations",
        "fieldsV1",
        "f:spec",
    ];
    let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!("a")), Just(json!([])), Just(json!({}))];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner, 0..5)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn hostile_objects_do_no_harm(live in any_json(), new in any_json()) {
        let bench = Bench::new();
        bench.with_target(|target| {
            let _ = apply(target, Some(&live), &new, "kubectl", true, NOW);
            let mut new = new.clone();
            update(target, Some(&live), &mut new, "one", "no time");
            keep_times(&live, &mut new);
        });
    }
}
