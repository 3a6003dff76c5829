//! Custom resources: from the definition that a user installs to the resource that is served, and back to nothing.
//!
//! ```text
//! created ─> names accepted ─> established, served ─> marked for deletion ─> objects deleted ─> gone
//! ```
//!
//! Every step is a write of the definition. A write of an established definition is served when it is acknowledged; the
//! steps are taken by [`lifecycle`], one behind the other.

mod conditions;
mod deletion;
mod lifecycle;
mod names;
mod served;

pub use deletion::mark;
pub use lifecycle::follow;

use serde_json::Value;

use super::registry::{Origin, Resource};
use super::tenure::Tenure;
use super::{StartError, State};
use crate::store::{Key, Record, Selection};

/// The resource that definitions themselves are.
const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";
/// Under which the store keeps them.
const STORAGE_NAME: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Whether a request is about definitions.
pub fn is_definition(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

/// Serves the custom resources whose definitions are in the store.
pub fn install_stored(state: &State) -> Result<(), StartError> {
    for record in state.store.list(&Selection::all(STORAGE_NAME)).records {
        let definition = read(&record)
            .map_err(|error| StartError::Definition { name: record.key.name.to_string(), cause: error.to_string() })?;
        refresh(state, &definition);
    }
    Ok(())
}

/// Serves the resource of a definition as the definition is now, or no longer.
pub fn refresh(state: &State, definition: &Value) {
    let (group, plural) = (text(&definition["spec"], "group"), text(&definition["spec"]["names"], "plural"));
    // What is part of the server cannot be defined once more.
    if state.registry.find(group, plural).is_some_and(|known| known.origin != Origin::Custom) {
        return;
    }
    let key = Key::new(STORAGE_NAME, "", format!("{plural}.{group}"));
    state.registry.decide(group, plural, |before| {
        let record = state.store.get(&key)?;
        let definition = read(&record).ok().filter(|stored| conditions::holds(stored, conditions::ESTABLISHED))?;
        let what = format!("{}{}", definition["spec"], definition["status"]["acceptedNames"]);
        let tenure = Tenure::of(&what, record.revision).resumed(before.map(|before| &before.tenure));
        Some(served::resource(&definition, tenure))
    });
}

fn read(record: &Record) -> serde_json::Result<Value> {
    serde_json::from_slice(&record.object)
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}
