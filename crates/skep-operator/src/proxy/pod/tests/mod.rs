//! What is built, option by option. `UPDATE_GOLDEN=1` writes the files anew.

mod refusals;
mod rules;
mod strategic;

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::samples::{OPTIONS, Sample, SampleOption};
use super::*;
use crate::proxy::{check_names, network_policy, pod_patch, role, role_binding, service, service_accounts};
use crate::write::diff::merge_patch;

const CHECKSUM: &str = "checksum-of-the-run-config";

fn built(sample: &Sample) -> Deployment {
    sample.with_inputs(|inputs| deployment(inputs, CHECKSUM).unwrap())
}

fn everything(sample: &Sample) -> Value {
    sample.with_inputs(|inputs| {
        json!({"deployment": deployment(inputs, CHECKSUM).unwrap(), "service": service(inputs),
            "serviceAccounts": service_accounts(inputs), "role": role(inputs), "roleBinding": role_binding(inputs),
            "podPatch": pod_patch(inputs).unwrap(), "networkPolicy": network_policy(inputs)})
    })
}

/// The same with lists of named items as maps, and their order beside them: differences are easier to read.
fn by_name(value: Value) -> Value {
    match value {
        Value::Object(members) => members.into_iter().map(|(name, member)| (name, by_name(member))).collect(),
        Value::Array(items) if !items.is_empty() && items.iter().all(|item| name_of(item).is_some()) => {
            let order: Vec<String> = items.iter().filter_map(name_of).collect();
            let mut named: Map<String, Value> = order.iter().cloned().zip(items.into_iter().map(by_name)).collect();
            named.insert("(order)".to_owned(), json!(order));
            Value::Object(named)
        }
        other => other,
    }
}

fn name_of(item: &Value) -> Option<String> {
    let name = item.get("mountPath").or(item.get("name")).or(item.pointer("/metadata/name"))?;
    name.as_str().map(str::to_owned)
}

fn compare(name: &str, found: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/proxy/pod/golden").join(format!("{name}.json"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{found:#}\n")).unwrap();
    }
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(*found, expected, "{}", path.display());
}

fn option(name: &str) -> &'static SampleOption {
    OPTIONS.iter().find(|(known, _)| *known == name).unwrap()
}

fn sample(remote: bool, options: &[&str]) -> Sample {
    Sample::new(remote, "github").with(options.iter().map(|name| option(name)))
}

#[test]
fn nothing_but_a_name() {
    compare("server", &everything(&sample(false, &[])));
    compare("remote", &everything(&sample(true, &[])));
}

#[test]
fn every_option_at_once() {
    for (remote, file) in [(false, "server_with_all"), (true, "remote_with_all")] {
        compare(file, &everything(&Sample::new(remote, "github").with(OPTIONS)));
    }
}

#[test]
fn every_option_changes_what_it_should() {
    for option in OPTIONS {
        let change = |remote| {
            let plain = Sample::new(remote, "github");
            merge_patch(&by_name(everything(&plain)), &by_name(everything(&plain.with([option]))))
        };
        compare(option.0, &json!({"server": change(false), "remote": change(true)}));
    }
}

/// Members that the API server would leave out. Pointers to false and zero are kept.
fn says_nothing(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag && !["privileged", "allowPrivilegeEscalation"].contains(&name),
        Value::Number(number) => number.as_i64() == Some(0) && name != "replicas",
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty() && name != "emptyDir",
    }
}

fn empty_member(value: &Value, place: &str) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let place = format!("{place}.{name}");
            if says_nothing(member, name) { Some(place) } else { empty_member(member, &place) }
        }),
        Value::Array(items) => items.iter().find_map(|item| empty_member(item, place)),
        _ => None,
    }
}

fn repeated(names: impl Iterator<Item = String>) -> Option<String> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(name.clone()))
}

proptest! {
    #[test]
    fn any_options_build_the_same_twice(remote: bool, chosen in prop::collection::vec(any::<bool>(), OPTIONS.len())) {
        let options: Vec<&SampleOption> =
            OPTIONS.iter().zip(&chosen).filter(|(_, chosen)| **chosen).map(|(option, _)| option).collect();
        let sample = Sample::new(remote, "github").with(options);
        let (one, other) = (built(&sample), built(&sample));
        let text = serde_json::to_string(&one).unwrap();
        prop_assert_eq!(&text, &serde_json::to_string(&other).unwrap());
        prop_assert_eq!(empty_member(&serde_json::to_value(&one).unwrap(), ""), None);
        let pod = one.spec.unwrap().template.spec.unwrap();
        prop_assert_eq!(repeated(pod.volumes.into_iter().flatten().map(|volume| volume.name)), None);
        for container in pod.containers {
            prop_assert_eq!(repeated(container.env.into_iter().flatten().map(|variable| variable.name)), None);
            prop_assert_eq!(repeated(container.volume_mounts.into_iter().flatten().map(|mount| mount.mount_path)), None);
        }
        prop_assert_eq!(sample.with_inputs(check_names), Ok(()));
    }
}
