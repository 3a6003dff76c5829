//! The kinds with a few rules each.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::place::{At, not_negative, one_of, struct_text};
use super::super::priority::{HIGHEST_PRIORITY, SYSTEM_PRIORITIES};
use crate::decode::decode;
use crate::go_text::type_name;
use crate::names::{RANGE_FORM, address_range, config_map_key, finalizer_name, label_value, qualified_name};
use crate::status::{FieldError, Problem};

/// One mebibyte.
const DATA_BYTES: usize = 1024 * 1024;

fn keys(root: &At<'_>, list: &str) -> Vec<FieldError> {
    let place = root.member(list);
    let refuse = |key: &str| {
        let path = place.key(key);
        let messages = config_map_key(key).into_iter();
        messages.map(|message| FieldError::invalid(path.as_str(), key, message)).collect::<Vec<_>>()
    };
    root.entries(list).flat_map(|(key, _)| refuse(key)).collect()
}

pub(super) fn config_map(root: &At<'_>) -> Vec<FieldError> {
    let mut errors = keys(root, "data");
    let mut bytes = 0;
    for (key, value) in root.entries("data") {
        bytes += value.as_str().map_or(0, str::len);
        if root.value["binaryData"].get(key).is_some() {
            let path = root.member("data").key(key);
            errors.push(FieldError::invalid(path, key, "duplicate of key present in binaryData"));
        }
    }
    errors.extend(keys(root, "binaryData"));
    bytes += root.entries("binaryData").map(|(_, value)| decoded_length(value.as_str())).sum::<usize>();
    if bytes > DATA_BYTES {
        // That is how the real server writes a field without a name.
        errors.push(FieldError::too_long("[]", DATA_BYTES));
    }
    errors
}

fn decoded_length(text: Option<&str>) -> usize {
    text.map_or(0, |text| text.len() / 4 * 3)
}

pub(super) fn secret(root: &At<'_>) -> Vec<FieldError> {
    let mut errors = keys(root, "data");
    let bytes: usize = root.entries("data").map(|(_, value)| decoded_length(value.as_str())).sum();
    let data = root.member("data");
    if bytes > DATA_BYTES {
        errors.push(FieldError::too_long("data", DATA_BYTES));
    }
    let mut needs = |key: &str| {
        let there = root.value["data"][key].as_str().is_some();
        if !there {
            errors.push(FieldError::required(data.key(key), ""));
        }
        there
    };
    match root.text("type") {
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            let annotations = root.deep("metadata.annotations");
            if annotations.text(name).is_empty() {
                errors.push(FieldError::required(annotations.key(name), ""));
            }
        }
        "kubernetes.io/tls" => {
            needs("tls.crt");
            needs("tls.key");
        }
        "kubernetes.io/basic-auth" => {
            let either = ["username", "password"].iter().any(|key| root.value["data"][*key].is_string());
            if !either {
                needs("username");
                needs("password");
            }
        }
        "kubernetes.io/ssh-auth" => _ = needs("ssh-privatekey"),
        kind @ ("kubernetes.io/dockerconfigjson" | "kubernetes.io/dockercfg") => {
            let key = if kind.ends_with("json") { ".dockerconfigjson" } else { ".dockercfg" };
            if needs(key) {
                let text = STANDARD.decode(root.value["data"][key].as_str().unwrap_or_default()).unwrap_or_default();
                if let Err(problem) = read_map(&text) {
                    errors.push(FieldError::invalid(data.key(key), "<secret contents redacted>", problem));
                }
            }
        }
        _ => {}
    }
    errors
}

/// Whether a document is a map, of whatever.
fn read_map(document: &[u8]) -> Result<(), String> {
    match decode(document).map_err(|error| error.to_string())?.value {
        Value::Object(_) | Value::Null => Ok(()),
        other => {
            let found = type_name(&other);
            Err(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"))
        }
    }
}

pub(super) fn namespace(root: &At<'_>) -> Vec<FieldError> {
    let list = root.deep("spec.finalizers");
    let finalizers = root.member("spec").items("finalizers");
    // The real server leaves the index out.
    let refuse = |name: &str| -> Vec<FieldError> {
        finalizer_name(name).iter().map(|message| list.invalid_as(name, message)).collect()
    };
    finalizers.iter().flat_map(|finalizer| refuse(finalizer.own_text())).collect()
}

pub(super) fn lease(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    let duration = spec.member("leaseDurationSeconds");
    if duration.value.as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.push(duration.invalid("must be greater than 0"));
    }
    errors.extend(not_negative(&spec.member("leaseTransitions")));
    errors
}

pub(super) fn priority_class(root: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = root.deep("metadata.name");
    let value = root.member("value");
    let number = value.value.as_i64().unwrap_or_default();
    if name.own_text().starts_with("system-") {
        let known = SYSTEM_PRIORITIES.iter().find(|known| known.name == name.own_text());
        let problem = match known {
            None => Some(format!("{} is not a known system priority class", name.own_text())),
            Some(known) if known.value != number => {
                Some(format!("value of {} PriorityClass must be {}", known.name, known.value))
            }
            Some(_) => None,
        };
        let reserved = "priority class names with 'system-' prefix are reserved for system use only. error: ";
        errors.extend(problem.map(|problem| name.forbidden(&format!("{reserved}{problem}"))));
    } else if number > HIGHEST_PRIORITY {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}");
        errors.push(value.forbidden(&detail));
    }
    let policy = root.member("preemptionPolicy");
    if policy.own_text().is_empty() {
        errors.push(policy.required(""));
    }
    errors.extend(one_of(&policy, &["PreemptLowerPriority", "Never"]).filter(|_| !policy.own_text().is_empty()));
    errors
}

pub(super) fn node(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, taint) in spec.items("taints").into_iter().enumerate() {
        // Taints were annotations once, and the real server still says so.
        let taint = At { path: format!("metadata.taints[{index}]"), value: taint.value };
        let key = taint.member("key");
        errors.extend(key.each(qualified_name(key.own_text())));
        let value = taint.member("value");
        errors.extend(value.each(label_value(value.own_text())));
        let effect = taint.member("effect");
        match effect.own_text() {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => errors.push(effect.required("")),
            _ => errors.push(effect.unsupported(&["NoSchedule", "PreferNoSchedule", "NoExecute"])),
        }
        if !seen.insert((key.own_text(), effect.own_text())) {
            let text = struct_text(&[
                ("Key", key.value.to_string()),
                ("Value", format!("{:?}", value.own_text())),
                ("Effect", effect.value.to_string()),
                ("TimeAdded", taint.value["timeAdded"].to_string()),
            ]);
            let detail = "taints must be unique by key and effect pair";
            errors.push(FieldError::new(taint.path.as_str(), Problem::DuplicateStruct(text), detail));
        }
    }
    for range in spec.items("podCIDRs") {
        if address_range(range.own_text()).is_none() {
            errors.push(range.invalid(RANGE_FORM));
        }
    }
    errors
}
