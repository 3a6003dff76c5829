//! Which names a definition gets: those that no other definition of its group has.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::conditions::{Condition, ESTABLISHED, NAMES_ACCEPTED, find, holds};

/// The names that the definitions of a group have.
#[derive(Debug, Default)]
pub struct InUse {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl InUse {
    pub fn add(&mut self, accepted: &Value) {
        let one = |member: &str| accepted[member].as_str().map(str::to_owned);
        self.resources.extend(["plural", "singular"].into_iter().filter_map(one));
        self.resources.extend(short_names(accepted).map(str::to_owned));
        self.kinds.extend(["kind", "listKind"].into_iter().filter_map(one));
    }
}

fn short_names(names: &Value) -> impl Iterator<Item = &str> {
    names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Gives a definition the names that it can have. Nothing, if it has them and says so.
pub fn accept(definition: &Value, in_use: &InUse) -> Option<Value> {
    let (wanted, accepted) = (&definition["spec"]["names"], &definition["status"]["acceptedNames"]);
    if wanted == accepted {
        return None;
    }
    let (names, accepted_condition) = choose(wanted, accepted, in_use);
    if names == *accepted && accepted_condition.is_said_by(definition) {
        return None;
    }
    let mut new = definition.clone();
    new["status"]["acceptedNames"] = names;
    let is_accepted = accepted_condition.holds;
    accepted_condition.set(&mut new);
    if is_accepted && !holds(definition, ESTABLISHED) {
        Condition::new(ESTABLISHED, false, "Installing", "the initial names have been accepted").set(&mut new);
    } else if find(definition, ESTABLISHED).is_none() {
        Condition::new(ESTABLISHED, false, "NotAccepted", "not all names are accepted").set(&mut new);
    }
    Some(new)
}

/// A name that is free, or was given to the definition before, is given to it. The last conflict is told.
fn choose(wanted: &Value, accepted: &Value, in_use: &InUse) -> (Value, Condition) {
    let mut names = accepted.clone();
    let mut condition = Condition::new(NAMES_ACCEPTED, true, "NoConflicts", "no conflicts found");
    let members = [
        ("plural", "PluralConflict", &in_use.resources),
        ("singular", "SingularConflict", &in_use.resources),
        ("shortNames", "ShortNamesConflict", &in_use.resources),
        ("kind", "KindConflict", &in_use.kinds),
        ("listKind", "ListKindConflict", &in_use.kinds),
    ];
    for (member, reason, taken) in members {
        let conflicts = conflicts(&wanted[member], &accepted[member], taken);
        match conflicts.as_slice() {
            [] => take(&mut names, wanted, member),
            [one] => condition = Condition::new(NAMES_ACCEPTED, false, reason, one.as_str()),
            several => {
                condition = Condition::new(NAMES_ACCEPTED, false, reason, format!("[{}]", several.join(", ")));
            }
        }
    }
    take(&mut names, wanted, "categories");
    (names, condition)
}

/// The names among the wanted ones, one or several, that are neither free nor the definition's own.
fn conflicts(wanted: &Value, accepted: &Value, taken: &BTreeSet<String>) -> Vec<String> {
    let each = |value: &Value| match value {
        Value::Array(names) => names.clone(),
        name => vec![name.clone()],
    };
    let own = each(accepted);
    each(wanted)
        .iter()
        .filter(|name| !own.contains(name))
        .filter_map(Value::as_str)
        .filter(|name| taken.contains(*name))
        .map(|name| format!("{name:?} is already in use"))
        .collect()
}

fn take(names: &mut Value, wanted: &Value, member: &str) {
    if !names.is_object() {
        *names = json!({});
    }
    let Some(names) = names.as_object_mut() else {
        return;
    };
    match wanted.get(member) {
        Some(value) => _ = names.insert(member.to_owned(), value.clone()),
        None => _ = names.remove(member),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(names: &Value) -> Value {
        json!({ "spec": { "names": names }, "status": { "acceptedNames": { "kind": "", "plural": "" } } })
    }

    fn said(definition: &Value, type_: &str) -> (bool, String, String) {
        let condition = find(definition, type_).unwrap();
        let text = |member: &str| condition[member].as_str().unwrap().to_owned();
        (condition["status"] == "True", text("reason"), text("message"))
    }

    #[test]
    fn free_names_are_given_once() {
        let names = json!({ "plural": "sheep", "singular": "sheep", "kind": "Sheep", "listKind": "SheepList",
            "shortNames": ["sh"], "categories": ["all"] });
        let accepted = accept(&definition(&names), &InUse::default()).unwrap();
        assert_eq!(accepted["status"]["acceptedNames"], names);
        assert_eq!(said(&accepted, NAMES_ACCEPTED), (true, "NoConflicts".into(), "no conflicts found".into()));
        assert_eq!(said(&accepted, ESTABLISHED).1, "Installing");
        let mut in_use = InUse::default();
        in_use.add(&names);
        assert_eq!(accept(&accepted, &in_use), None);
    }

    #[test]
    fn names_of_others_are_refused_and_the_rest_is_given() {
        let mut in_use = InUse::default();
        in_use.add(&json!({ "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
            "shortNames": ["w", "wd"] }));
        let refused = definition(&json!({ "plural": "gadgets", "singular": "gadget", "kind": "Gadget",
            "listKind": "GadgetList", "shortNames": ["wd", "g", "w"] }));
        let refused = accept(&refused, &in_use).unwrap();
        assert_eq!(
            refused["status"]["acceptedNames"],
            json!({ "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList" })
        );
        let message = r#"["wd" is already in use, "w" is already in use]"#.to_owned();
        assert_eq!(said(&refused, NAMES_ACCEPTED), (false, "ShortNamesConflict".into(), message));
        assert_eq!(said(&refused, ESTABLISHED), (false, "NotAccepted".into(), "not all names are accepted".into()));
        assert_eq!(accept(&refused, &in_use), None, "the same is not said twice");
        let freed = accept(&refused, &InUse::default()).unwrap();
        assert_eq!(freed["status"]["acceptedNames"], freed["spec"]["names"]);
        assert_eq!(said(&freed, ESTABLISHED).1, "Installing");
    }
}
