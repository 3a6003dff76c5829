//! Whether an object on the server is what it should be, and whether it holds anything that it no longer should.
//!
//! `fieldsV1` of our own entry in `managedFields` says what was applied last, and by its `k:` and `v:` members which
//! lists are merged by key or as a set. Nothing else about the schema needs to be known.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Map, Value};

/// Whether `live` carries everything that `desired` says. `owned` is our set of fields at this place.
pub fn carries(live: &Value, desired: &Value, owned: Option<&Value>) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => desired.iter().all(|(name, value)| {
            let owned = member(owned, &format!("f:{name}"));
            match live.get(name) {
                Some(live) => carries(live, value, owned) || (is_amount(name, live, value)),
                None => is_zero(value),
            }
        }),
        (Value::Array(live), Value::Array(desired)) => carries_items(live, desired, owned),
        (live, desired) => live == desired,
    }
}

fn carries_items(live: &[Value], desired: &[Value], owned: Option<&Value>) -> bool {
    let keys: Vec<(Map<String, Value>, &Value)> = keyed(owned);
    if !keys.is_empty() {
        return desired.iter().all(|item| {
            let Some((key, owned)) = keys.iter().find(|(key, _)| has_key(item, key)) else { return false };
            live.iter().any(|live| has_key(live, key) && carries(live, item, Some(owned)))
        });
    }
    if owned.and_then(Value::as_object).is_some_and(|owned| owned.keys().any(|name| name.starts_with("v:"))) {
        return desired.iter().all(|item| live.contains(item));
    }
    live.len() == desired.len() && live.iter().zip(desired).all(|(live, item)| carries(live, item, None))
}

/// Whether something in `owned` is not in `desired` any more: it was applied once and has to go.
pub fn has_gone(owned: &Value, desired: &Value) -> bool {
    let Some(owned) = owned.as_object() else { return false };
    owned.iter().any(|(name, below)| {
        let found = match name.split_once(':') {
            Some(("f", member)) => desired.get(member),
            Some(("k", key)) => {
                let Ok(key) = serde_json::from_str::<Map<String, Value>>(key) else { return true };
                desired.as_array().and_then(|items| items.iter().find(|item| has_key(item, &key)))
            }
            Some(("v", value)) => {
                let Ok(value) = serde_json::from_str::<Value>(value) else { return true };
                desired.as_array().and_then(|items| items.iter().find(|item| **item == value))
            }
            // `.` is the place itself.
            _ => return false,
        };
        found.is_none_or(|found| has_gone(below, found))
    })
}

fn member<'a>(owned: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    owned.and_then(|owned| owned.get(name))
}

/// The keyed items of a list that is merged by key.
fn keyed(owned: Option<&Value>) -> Vec<(Map<String, Value>, &Value)> {
    let members = owned.and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(name, below)| Some((serde_json::from_str(name.strip_prefix("k:")?).ok()?, below))).collect()
}

/// Whether an item of a list has these key members. A member that the key has only by default may be absent.
fn has_key(item: &Value, key: &Map<String, Value>) -> bool {
    key.iter().all(|(name, value)| match item.get(name) {
        Some(found) => found == value,
        None => name == "protocol" && value == "TCP",
    })
}

/// The API server leaves out what says nothing.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_zero),
    }
}

/// Whether two amounts of a resource are the same, written differently.
fn is_amount(name: &str, live: &Value, desired: &Value) -> bool {
    let (Value::String(live), Value::String(desired)) = (live, desired) else { return false };
    matches!(name, "cpu" | "memory" | "ephemeral-storage" | "storage" | "sizeLimit")
        && amount(live).is_some_and(|live| amount(desired) == Some(live))
}

/// An amount in thousandths.
fn amount(text: &str) -> Option<i128> {
    let Quantity(text) = Quantity(text.to_owned());
    let split =
        text.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let (exponent, base): (i32, i128) = match suffix {
        "m" => (-1, 1000),
        "" => (0, 1000),
        "k" => (1, 1000),
        "M" => (2, 1000),
        "G" => (3, 1000),
        "T" => (4, 1000),
        "P" => (5, 1000),
        "Ki" => (1, 1024),
        "Mi" => (2, 1024),
        "Gi" => (3, 1024),
        "Ti" => (4, 1024),
        "Pi" => (5, 1024),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let thousandths = digits.checked_mul(if exponent < 0 { 1 } else { 1000 })?;
    let factor = if exponent < 0 { 1 } else { base.checked_pow(exponent.unsigned_abs())? };
    let amount = thousandths.checked_mul(factor)?;
    (amount % scale == 0).then(|| amount / scale)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned() -> Value {
        json!({"f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {"f:args": {}, "f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:name": {}, "f:image": {},
                "f:resources": {"f:limits": {"f:cpu": {}}},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}})
    }

    fn desired() -> Value {
        json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x"]},
            "spec": {"args": ["one", "two"], "containers": [
                {"name": "main", "image": "i", "resources": {"limits": {"cpu": "1000m"}}, "ports": [{"containerPort": 80}]}]}})
    }

    fn live() -> Value {
        json!({"metadata": {"labels": {"a": "1", "foreign": "2"}, "finalizers": ["y", "x"]},
            "spec": {"args": ["one", "two"], "defaulted": true, "containers": [{"name": "sidecar"},
                {"name": "main", "image": "i", "imagePullPolicy": "Always", "resources": {"limits": {"cpu": "1"}},
                    "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}})
    }

    #[test]
    fn additions_of_others_are_no_difference() {
        assert!(carries(&live(), &desired(), Some(&owned())));
        assert!(!has_gone(&owned(), &desired()));
    }

    #[test]
    fn every_change_of_ours_is_a_difference() {
        for (place, value) in [
            ("/metadata/labels/a", json!("2")),
            ("/metadata/finalizers/0", json!("z")),
            ("/spec/args", json!(["two", "one"])),
            ("/spec/args", json!(["one"])),
            ("/spec/containers/0/image", json!("j")),
            ("/spec/containers/0/name", json!("other")),
            ("/spec/containers/0/resources/limits/cpu", json!("1001m")),
            ("/spec/containers/0/ports/0/containerPort", json!(81)),
        ] {
            let mut desired = desired();
            *desired.pointer_mut(place).unwrap() = value;
            assert!(!carries(&live(), &desired, Some(&owned())), "{place}");
        }
    }

    #[test]
    fn what_is_no_longer_said_is_noticed() {
        for place in ["/metadata/labels", "/spec/args", "/spec/containers/0/image", "/spec/containers/0/ports"] {
            let mut desired = desired();
            let (above, name) = place.rsplit_once('/').unwrap();
            desired.pointer_mut(above).unwrap().as_object_mut().unwrap().remove(name);
            assert!(has_gone(&owned(), &desired), "{place}");
        }
        let mut desired = desired();
        desired["spec"]["containers"] = json!([]);
        assert!(has_gone(&owned(), &desired));
    }

    #[test]
    fn amounts_are_compared_by_value() {
        for (one, other) in [("1", "1000m"), ("0.5", "500m"), ("1Gi", "1024Mi"), ("1k", "1000"), ("1.5Gi", "1536Mi")] {
            assert_eq!(amount(one), amount(other), "{one} {other}");
        }
        assert_ne!(amount("1G"), amount("1Gi"));
        assert_eq!(amount("lots"), None);
    }
}
