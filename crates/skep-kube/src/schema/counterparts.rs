//! Which item of an old list an item of the new one continues.

use std::collections::HashMap;

use serde_json::Value;

use super::{ListType, Schema};

/// The items of an old list by their keys. Only the items of maps can be told apart.
#[derive(Debug, Default)]
pub(super) struct Counterparts<'a> {
    keys: &'a [String],
    by_identity: HashMap<String, &'a Value>,
}

impl<'a> Counterparts<'a> {
    /// Looks at every item of the old list once, so that none has to be searched for.
    pub(super) fn of(schema: &'a Schema, old: Option<&'a Value>) -> Self {
        let (ListType::Map(keys), Some(Value::Array(items))) = (&schema.list_type, old) else {
            return Self::default();
        };
        let mut by_identity = HashMap::with_capacity(items.len());
        for item in items {
            if let Some(identity) = identity(keys, item) {
                by_identity.entry(identity).or_insert(item);
            }
        }
        Self { keys, by_identity }
    }

    /// What an item was before.
    pub(super) fn find(&self, item: &Value) -> Option<&'a Value> {
        if self.by_identity.is_empty() {
            return None;
        }
        self.by_identity.get(&identity(self.keys, item)?).copied()
    }
}

/// The values of the keys. An absent one is as good as null.
fn identity(keys: &[String], item: &Value) -> Option<String> {
    #[cfg(test)]
    tests::LOOKS.with(|looks| looks.set(looks.get() + 1));
    let item = item.as_object()?;
    let values: Vec<&Value> = keys.iter().map(|name| item.get(name).unwrap_or(&Value::Null)).collect();
    serde_json::to_string(&values).ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use serde_json::json;

    use super::super::validate::{CompiledSchema, validate};
    use super::*;

    thread_local! {
        /// How often an item was looked at.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    fn schema(rules: &Value) -> Schema {
        Schema::read(
            &json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
            "items": { "type": "object", "x-kubernetes-validations": rules,
                "properties": { "a": { "type": "integer" }, "b": { "type": "string" }, "c": { "type": "integer" } } } }),
        )
    }

    #[test]
    fn items_are_found_by_all_of_their_keys() {
        let old = json!([{ "a": 1, "b": "x", "c": 1 }, { "a": 1, "c": 2 }, { "a": 1, "b": "x", "c": 3 }, 7]);
        let schema = schema(&json!([]));
        let counterparts = Counterparts::of(&schema, Some(&old));
        for (item, found) in [
            (json!({ "b": "x", "a": 1, "c": 9 }), Some(&old[0])),
            (json!({ "a": 1 }), Some(&old[1])),
            (json!({ "a": 1, "b": null }), Some(&old[1])),
            (json!({ "a": "1", "b": "x" }), None),
            (json!(7), None),
        ] {
            assert_eq!(counterparts.find(&item), found, "{item}");
        }
        assert_eq!(Counterparts::of(&Schema::read(&json!({ "type": "array" })), Some(&old)).find(&old[0]), None);
    }

    /// Ten times the items must not be a hundred times the work.
    #[test]
    fn the_work_grows_with_the_items_and_not_with_their_square() {
        let looks = |rules: &Value, count: usize| {
            let list = |c: usize| json!({ "list": (0..count).map(|a| json!({ "a": a, "c": c })).collect::<Vec<_>>() });
            let list_schema = Arc::new(schema(rules));
            let schema = Schema { properties: [("list".to_owned(), list_schema)].into(), ..Schema::default() };
            let compiled = CompiledSchema::new(Arc::new(schema));
            LOOKS.set(0);
            assert_eq!(validate(&compiled, &list(2), Some(&list(1))), []);
            LOOKS.get()
        };
        for count in [2000, 20_000] {
            assert_eq!(looks(&json!([]), count), 2 * count, "both lists");
        }
        for count in [10, 100] {
            let rules = json!([{ "rule": "self.c > oldSelf.c" }]);
            assert_eq!(looks(&rules, count), 4 * count, "both lists, for the keywords and for the rules");
        }
    }
}
