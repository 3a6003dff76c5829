//! Replaces what legitimately differs from run to run by tokens, so that two recordings can be compared.
//!
//! | what | becomes |
//! |---|---|
//! | the namespace and the unique part of names | `NAMESPACE`, `UNIQUE` |
//! | uids | `uid1`, `uid2`, … in the order of appearance |
//! | resource versions of objects | `rv1`, `rv2`, … in their own order |
//! | resource versions of lists and bookmarks | `rv3+`: not before `rv3`, and before `rv4` |
//! | times around now; ages in tables | `TIME`, `MICROTIME`; `AGE` |
//! | generated names, cluster addresses, node ports, tokens, continue tokens | a word each |

mod revisions;
#[cfg(test)]
mod tests;
mod texts;

use serde_json::{Map, Value};

use super::recording::Recording;
use revisions::Revisions;
pub(crate) use texts::Texts;

/// Normalises the answers to a scenario.
pub(super) fn normalise(mut raw: Recording, namespace: &str, unique: &str, managed_fields: bool) -> Recording {
    for exchange in &mut raw.exchanges {
        exchange.body = sorted(std::mem::take(&mut exchange.body));
        tidy(&mut exchange.body, managed_fields);
    }
    let bodies = || raw.exchanges.iter().map(|exchange| &exchange.body);
    let revisions = Revisions::of(bodies());
    let mut texts = Texts::new(namespace, unique, bodies());
    for exchange in &mut raw.exchanges {
        revisions.replace(&mut exchange.body);
        texts.replace(&mut exchange.body);
        for value in exchange.headers.values_mut() {
            *value = texts.text(value);
        }
    }
    raw
}

/// Members in the order of their names: the order of tokens must not depend on the order of members.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(key, member)| (key, sorted(member))).collect();
            members.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(Map::from_iter(members))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// Drops and replaces by the names of members.
fn tidy(value: &mut Value, managed_fields: bool) {
    match value {
        Value::Object(members) => {
            if !managed_fields {
                members.remove("managedFields");
            }
            for (key, member) in members.iter_mut() {
                match (key.as_str(), &mut *member) {
                    ("managedFields", Value::Array(entries)) => entries.sort_by_key(identity_of_entry),
                    ("causes", Value::Array(causes)) if causes.iter().all(is_manager_conflict) => {
                        causes.sort_by_key(ToString::to_string);
                    }
                    ("columnDefinitions", Value::Array(columns)) => columns.iter_mut().for_each(drop_description),
                    ("cells", Value::Array(cells)) => cells.iter_mut().for_each(hide_age),
                    ("nodePort" | "healthCheckNodePort", Value::Number(_)) => *member = "NODEPORT".into(),
                    ("continue", Value::String(token)) if !token.is_empty() => *member = "CONTINUE".into(),
                    _ => {}
                }
                tidy(member, managed_fields);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, managed_fields)),
        _ => {}
    }
}

/// The real server sorts by the second of the last change, which is a matter of luck within a scenario.
fn identity_of_entry(entry: &Value) -> String {
    let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
    [text("manager"), text("operation"), text("subresource"), text("apiVersion")].join("/")
}

/// Conflicts with several managers come in any order.
fn is_manager_conflict(cause: &Value) -> bool {
    cause["reason"] == "FieldManagerConflict"
}

/// The words of Kubernetes' own documentation are not ours to copy.
fn drop_description(column: &mut Value) {
    if let Value::Object(members) = column {
        members.remove("description");
    }
}

fn hide_age(cell: &mut Value) {
    if cell.as_str().is_some_and(is_age) {
        *cell = "AGE".into();
    }
}

/// Whether a cell of a table is a time span such as `5m3s`.
pub(crate) fn is_age(text: &str) -> bool {
    text.ends_with(['s', 'm', 'h'])
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|one| one.is_ascii_digit() || "smhd".contains(one))
}
