//! Leaves out of an answer what the scenario says is not to be recorded.

use serde_json::Value;

use super::scenario::Select;

/// Removes what is at a path; `*` stands for any one member or item, `**` for any number of them, `/` for everything.
pub(super) fn remove(value: &mut Value, path: &str) {
    if path == "/" {
        *value = Value::Null;
        return;
    }
    let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    remove_at(value, &steps);
}

fn remove_at(value: &mut Value, steps: &[&str]) {
    let Some((step, rest)) = steps.split_first() else {
        return;
    };
    if *step == "**" {
        remove_at(value, rest);
        for child in children(value) {
            remove_at(child, steps);
        }
    } else if rest.is_empty() {
        match value {
            Value::Object(members) if *step == "*" => members.clear(),
            Value::Object(members) => {
                members.remove(&unescaped(step));
            }
            Value::Array(items) => match step.parse::<usize>() {
                Ok(index) if index < items.len() => {
                    items.remove(index);
                }
                _ => {}
            },
            _ => {}
        }
    } else {
        for child in matching(value, step) {
            remove_at(child, rest);
        }
    }
}

/// Keeps only the chosen items of the lists at a path.
pub(super) fn select(value: &mut Value, select: &Select) {
    let mut places = vec![value];
    for step in select.at.trim_start_matches('/').split('/').filter(|step| !step.is_empty()) {
        places = places.into_iter().flat_map(|place| matching(place, step)).collect();
    }
    for place in places {
        if let Value::Array(items) = place {
            items.retain(|item| {
                let member = item.pointer(&select.by).and_then(Value::as_str);
                member.is_some_and(|member| select.values.iter().any(|value| value == member))
            });
            items.sort_by_key(|item| item.pointer(&select.by).map(ToString::to_string));
        }
    }
}

fn matching<'a>(value: &'a mut Value, step: &str) -> Vec<&'a mut Value> {
    match (step, value) {
        ("*", value) => children(value),
        (_, Value::Object(members)) => members.get_mut(&unescaped(step)).into_iter().collect(),
        (_, Value::Array(items)) => {
            step.parse::<usize>().ok().and_then(|index| items.get_mut(index)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn children(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Object(members) => members.iter_mut().map(|(_, member)| member).collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_remove_members() {
        let mut value = json!({ "a": [{ "x": 1, "y": 2 }, { "x": 3 }], "b": { "c": { "x": 4 } } });
        remove(&mut value, "/a/*/x");
        assert_eq!(value, json!({ "a": [{ "y": 2 }, {}], "b": { "c": { "x": 4 } } }));
        remove(&mut value, "/**/x");
        assert_eq!(value, json!({ "a": [{ "y": 2 }, {}], "b": { "c": {} } }));
    }

    #[test]
    fn select_keeps_chosen_items_in_the_order_of_names() {
        let mut value = json!({ "groups": [{ "resources": [{ "name": "c" }, { "name": "b" }, { "name": "a" }] }] });
        let chosen =
            Select { at: "/groups/*/resources".into(), by: "/name".into(), values: vec!["a".into(), "c".into()] };
        select(&mut value, &chosen);
        assert_eq!(value, json!({ "groups": [{ "resources": [{ "name": "a" }, { "name": "c" }] }] }));
    }
}
