//! Strategic merge of a pod template: a merge patch that knows by which member the items of a list are told apart.
//!
//! | directive | where | what it does |
//! |---|---|---|
//! | `$patch: replace` or `delete` | an object | takes the patch instead of what is there, or nothing |
//! | `$patch: replace` or `delete` | an item of a keyed list | empties the list first, or takes the item with that key out |
//! | `$retainKeys` | an object | takes every member out that is not in this list |
//! | `$setElementOrder/…` | beside a list | nothing: items stay where they are, new ones follow |
//!
//! Members that are null go; members that nobody knows are kept.

use serde_json::{Map, Value};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// Lists of a pod template whose items are merged, and the member that tells them apart. Every other list is replaced.
/// The names mean the same wherever they occur in a template.
pub(super) const MERGE_KEYS: [(&str, &str); 13] = [
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("ports", "containerPort"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
];

/// Why a patch makes no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MergeError {
    #[error("{place}: unknown directive {directive}; use $patch: replace, $patch: delete or $retainKeys")]
    Directive { place: String, directive: String },
    #[error("{place}: {key} is missing, by which items are told apart")]
    Key { place: String, key: &'static str },
}

/// `base` changed by `patch`.
pub(super) fn merge(base: Value, patch: &Map<String, Value>) -> Result<Value, MergeError> {
    let mut members = match base {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    merge_members(&mut members, patch, "")?;
    Ok(Value::Object(members))
}

fn merge_members(base: &mut Map<String, Value>, patch: &Map<String, Value>, place: &str) -> Result<(), MergeError> {
    match directive(patch, place)? {
        Some(Directive::Delete) => {
            base.clear();
            return Ok(());
        }
        Some(Directive::Replace) => base.clear(),
        None => {}
    }
    if let Some(kept) = patch.get(RETAIN_KEYS).and_then(Value::as_array) {
        base.retain(|name, _| kept.iter().any(|kept| kept == name.as_str()));
    }
    for (name, value) in patch {
        let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        if name.starts_with('$') {
            let is_known = [PATCH, RETAIN_KEYS].contains(&name.as_str()) || name.starts_with(ELEMENT_ORDER);
            if !is_known {
                return Err(MergeError::Directive { place, directive: name.clone() });
            }
            continue;
        }
        match (base.get_mut(name), value, merge_key(name)) {
            (_, Value::Null, _) => {
                base.remove(name);
            }
            (Some(Value::Object(found)), Value::Object(patch), _) => merge_members(found, patch, &place)?,
            (Some(Value::Array(found)), Value::Array(patch), Some(key)) => merge_items(found, patch, key, &place)?,
            _ => {
                base.insert(name.clone(), plain(value, &place)?);
            }
        }
    }
    Ok(())
}

fn merge_items(base: &mut Vec<Value>, patch: &[Value], key: &'static str, place: &str) -> Result<(), MergeError> {
    let mut additions = Vec::new();
    let mut replaced = false;
    for (index, item) in patch.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let Value::Object(members) = item else { return Err(MergeError::Key { place, key }) };
        let found = directive(members, &place)?;
        if matches!(found, Some(Directive::Replace)) {
            replaced = true;
            continue;
        }
        let identity = members.get(key).ok_or(MergeError::Key { place: place.clone(), key })?;
        match found {
            Some(_) => base.retain(|item| item.get(key) != Some(identity)),
            None => additions.push((place, identity, members)),
        }
    }
    if replaced {
        base.clear();
    }
    for (place, identity, members) in additions {
        match base.iter_mut().find(|item| item.get(key) == Some(identity)) {
            Some(Value::Object(found)) => merge_members(found, members, &place)?,
            _ => base.push(plain(&Value::Object(members.clone()), &place)?),
        }
    }
    Ok(())
}

/// A value of a patch as it stands where there was nothing before: without directives and nulls.
fn plain(value: &Value, place: &str) -> Result<Value, MergeError> {
    match value {
        Value::Object(members) => {
            let mut made = Map::new();
            merge_members(&mut made, members, place)?;
            Ok(Value::Object(made))
        }
        Value::Array(items) => {
            let mut made = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let place = format!("{place}[{index}]");
                let directive = item.as_object().map_or(Ok(None), |members| directive(members, &place))?;
                if directive.is_none() {
                    made.push(plain(item, &place)?);
                }
            }
            Ok(Value::Array(made))
        }
        scalar => Ok(scalar.clone()),
    }
}

#[derive(Clone, Copy)]
enum Directive {
    Replace,
    Delete,
}

fn directive(patch: &Map<String, Value>, place: &str) -> Result<Option<Directive>, MergeError> {
    match patch.get(PATCH).map(|directive| directive.as_str().unwrap_or_default()) {
        None => Ok(None),
        Some("replace") => Ok(Some(Directive::Replace)),
        Some("delete") => Ok(Some(Directive::Delete)),
        Some(other) => Err(MergeError::Directive { place: place.to_owned(), directive: format!("{PATCH}: {other}") }),
    }
}

fn merge_key(list: &str) -> Option<&'static str> {
    MERGE_KEYS.iter().find(|(name, _)| *name == list).map(|(_, key)| *key)
}
