//! Objects of built-in kinds with anything anywhere: nothing panics, and nothing is lost but the object itself.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Value, json};
use skep_kube::builtin::{self, Allocations, Builtin};
use time::OffsetDateTime;

#[test]
fn values_of_any_type_anywhere_are_survived() -> anyhow::Result<()> {
    let strange = [
        json!(null),
        json!(true),
        json!(i64::MAX),
        json!(-0.5),
        json!("\u{1F600}"),
        json!(["x", null]),
        json!({ "x": [{}] }),
    ];
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/builtin"))? {
        let object: Value = serde_saphyr::from_str(&std::fs::read_to_string(entry?.path())?)?;
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = object["kind"].as_str().and_then(|kind| builtin::find(group, version, kind));
        let Some(kind) = kind else { continue };
        let mut places = Vec::new();
        pointers(&object, String::new(), &mut places);
        for place in places {
            for value in &strange {
                let mut changed = object.clone();
                if let Some(found) = changed.pointer_mut(&place) {
                    *found = value.clone();
                }
                run(kind, &changed, &object);
            }
        }
    }
    Ok(())
}

fn pointers(value: &Value, path: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, below) in members {
                pointers(below, format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                pointers(below, format!("{path}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(path);
}

fn run(kind: &Builtin, object: &Value, other: &Value) {
    let mut new = object.clone();
    builtin::default(kind, &mut new);
    let settled = new.clone();
    builtin::default(kind, &mut new);
    assert_eq!(new, settled, "defaults are filled in once");
    builtin::admit_service_account(&mut new, &json!({}), "xxxxx");
    let _ = builtin::admit_priority(&mut new, std::slice::from_ref(other));
    builtin::admit_pod(&mut new);
    builtin::admit_node(&mut new);
    builtin::prepare_create(kind, &mut new, "2026-01-02T03:04:05Z");
    let state = Allocations::new((Ipv4Addr::new(10, 0, 0, 0), 16), 30000..=32767, vec![]);
    builtin::validate_create(kind, &new);
    let _ = builtin::allocate(&mut new, &state, 7);
    for (new, old) in [(object, other), (other, object)] {
        let mut updated = new.clone();
        builtin::prepare_update(kind, &mut updated, old);
        builtin::validate_update(kind, &updated, old);
        builtin::prepare_status_update(kind, &mut updated, old);
        builtin::validate_status_update(kind, &updated, old);
    }
    let mut event = object.clone();
    builtin::event_from_core(&mut event);
    builtin::event_to_core(&mut event);
    builtin::row(kind, object, OffsetDateTime::UNIX_EPOCH);
}
