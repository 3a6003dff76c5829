//! Custom resources: from the definition that a user installs to the resource that is served, and back to nothing.
//!
//! ```text
//! created ─> names accepted ─> established, served ─> marked for deletion ─> objects deleted ─> gone
//! ```
//!
//! Every step is a write of the definition; the steps are taken by [`lifecycle`], one behind the other. What is served
//! follows the store: every request sees what has been acknowledged before, see [`catch_up`].

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
use crate::store::{Key, News, Record, Selection};

/// The resource that definitions themselves are.
const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";
/// Under which the store keeps them.
const STORAGE_NAME: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Whether a request is about definitions.
pub fn is_definition(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

/// Serves the custom resources whose definitions are in the store, all of which must be readable.
pub fn install_stored(state: &State) -> Result<(), StartError> {
    for record in state.store.list(&Selection::all(STORAGE_NAME)).records {
        read(&record)
            .map_err(|error| StartError::Definition { name: record.key.name.to_string(), cause: error.to_string() })?;
    }
    catch_up(state);
    Ok(())
}

/// Serves what the definitions in the store define now.
pub fn catch_up(state: &State) {
    let mut definitions = state.definitions.lock();
    if definitions.is_current(&state.store) {
        return;
    }
    match definitions.catch_up(&state.store, |key| *key.resource == *STORAGE_NAME) {
        News::Changes(events) => events.iter().for_each(|event| refresh(state, &event.key().name)),
        News::Everything => {
            for resource in state.registry.all() {
                refresh(state, &format!("{}.{}", resource.plural, resource.group));
            }
            for record in state.store.list(&Selection::all(STORAGE_NAME)).records {
                refresh(state, &record.key.name);
            }
        }
    }
}

/// Serves the resource of a definition as the definition is now, or no longer. A definition is named by what it
/// defines: `widgets.example.com`.
fn refresh(state: &State, name: &str) {
    let Some((plural, group)) = name.split_once('.') else {
        return;
    };
    // What is part of the server cannot be defined once more.
    if state.registry.find(group, plural).is_some_and(|known| known.origin != Origin::Custom) {
        return;
    }
    state.registry.decide(group, plural, |before| {
        let record = state.store.get(&Key::new(STORAGE_NAME, "", name))?;
        let definition = read(&record).ok().filter(|stored| conditions::holds(stored, conditions::ESTABLISHED))?;
        let what = format!("{}{}", definition["spec"], definition["status"]["acceptedNames"]);
        let tenure = Tenure::of(&what, record.revision).resumed(before.map(|before| &before.tenure));
        Some(served::resource(&definition, tenure))
    });
}

fn read(record: &Record) -> serde_json::Result<Value> {
    serde_json::from_slice(&record.object.bytes())
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}
