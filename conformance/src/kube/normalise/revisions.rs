//! Resource versions become tokens that keep their order.

use std::collections::BTreeSet;

use serde_json::Value;

/// The versions of all objects of a recording.
#[derive(Debug, Default)]
pub(super) struct Revisions(BTreeSet<u64>);

impl Revisions {
    pub(super) fn of<'a>(bodies: impl Iterator<Item = &'a Value>) -> Self {
        let mut revisions = Self::default();
        bodies.for_each(|body| revisions.find(body));
        revisions
    }

    fn find(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                if belongs_to_an_object(value)
                    && let Some(revision) = revision(value)
                {
                    self.0.insert(revision);
                }
                members.values().for_each(|member| self.find(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.find(item)),
            _ => {}
        }
    }

    pub(super) fn replace(&self, value: &mut Value) {
        if let Some(revision) = revision(value) {
            let token = self.token(revision, belongs_to_an_object(value));
            value["resourceVersion"] = token.into();
        }
        match value {
            Value::Object(members) => members.iter_mut().for_each(|(_, member)| self.replace(member)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            _ => {}
        }
    }

    /// A list is of the time of the last write, whoever made it: only what lies before it can be told.
    fn token(&self, revision: u64, of_object: bool) -> String {
        let place = self.0.range(..=revision).count();
        if of_object { format!("rv{place}") } else { format!("rv{place}+") }
    }
}

fn revision(metadata: &Value) -> Option<u64> {
    metadata.get("resourceVersion")?.as_str()?.parse().ok().filter(|revision| *revision > 0)
}

/// The metadata of a list has neither name nor uid. A reference to an object has both, too.
fn belongs_to_an_object(metadata: &Value) -> bool {
    metadata.get("uid").is_some() || metadata.get("name").is_some()
}
