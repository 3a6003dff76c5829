//! One stored object, as readers and watchers share it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::key::Key;
use super::text::Text;

/// What a record costs besides its text: the structures around it and its places in the index and the history.
const FIXED_BYTES: usize = 256;

/// An object at one revision. It never changes; a write makes another one.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    pub key: Key,
    /// The revision of the last change: the object's `resourceVersion`.
    pub revision: u64,
    /// The revision that created the object.
    pub created: u64,
    /// The object as JSON, without `apiVersion`, `kind` and `metadata.resourceVersion`: the server adds them when it
    /// writes the object out.
    pub object: Text,
    pub labels: Labels,
}

/// Objects hold secrets: what is in them is not shown.
impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, revision, .. } = self;
        formatter.debug_struct("Record").field("key", key).field("revision", revision).finish_non_exhaustive()
    }
}

impl Record {
    /// About how much memory the record takes.
    pub fn size(&self) -> usize {
        let labels: usize = self.labels.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        FIXED_BYTES + self.key.name.len() + self.object.size() + labels
    }
}

/// What a write puts into a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    pub object: Text,
    pub labels: Labels,
}

/// The labels of an object, sorted by name, so that selectors need not parse the object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Arc<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The labels in `metadata.labels`. Values that are not strings are no labels.
    pub fn of(object: &Value) -> Self {
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        labels.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(candidate, _)| candidate.as_ref().cmp(name)).ok()?;
        self.0.get(place).map(|(_, value)| value.as_ref())
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

impl<Name: Into<Box<str>>, Text: Into<Box<str>>> FromIterator<(Name, Text)> for Labels {
    fn from_iter<Pairs: IntoIterator<Item = (Name, Text)>>(pairs: Pairs) -> Self {
        let mut labels: Vec<(Box<str>, Box<str>)> =
            pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        labels.sort();
        labels.dedup_by(|later, earlier| later.0 == earlier.0);
        Self(labels.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_come_from_the_metadata_in_order() {
        let object = json!({"metadata": {"labels": {"tier": "web", "app": "shop", "odd": 5}}});
        let labels = Labels::of(&object);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("app", "shop"), ("tier", "web")]);
        assert_eq!(labels.get("tier"), Some("web"));
        assert_eq!(labels.get("odd"), None);
    }

    #[test]
    fn debug_output_tells_nothing_of_an_object() {
        let content = Content { object: "hunter2".into(), labels: Labels::default() };
        let record = Record {
            key: Key::new("/secrets", "default", "door"),
            revision: 3,
            created: 2,
            object: content.object.clone(),
            labels: Labels::default(),
        };
        let shown = format!("{content:?} {record:?}");
        assert!(shown.contains("7 bytes") && shown.contains("door"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn an_object_without_labels_has_none() {
        for object in [json!({}), json!(null), json!({"metadata": {"labels": []}}), json!({"metadata": 1})] {
            assert_eq!(Labels::of(&object), Labels::default());
        }
    }
}
