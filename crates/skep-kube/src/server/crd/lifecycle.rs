//! The steps of every definition, from the first write to the last.
//!
//! One task follows the definitions in the store and takes the next step of each that is not where it should be. A step
//! is a write, so that nothing is lost when the server stops between two of them.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::task::JoinSet;

use super::super::State;
use super::super::write;
use super::conditions::{Condition, ESTABLISHED, NAMES_ACCEPTED, holds};
use super::names::{InUse, accept};
use super::{STORAGE_NAME, catch_up, deletion, read, text};
use crate::status::Reason;
use crate::store::{Event, Key, Record, WatchEnd};

/// Begins to take steps, until the state is gone.
pub fn follow(state: &Arc<State>) {
    let lifecycle = Lifecycle {
        state: Arc::downgrade(state),
        known: BTreeMap::new(),
        deletions: JoinSet::new(),
        in_deletion: HashSet::new(),
    };
    tokio::spawn(lifecycle.run());
}

struct Lifecycle {
    /// Weak, so that following the definitions does not keep a server alive that nobody has any more.
    state: Weak<State>,
    known: BTreeMap<String, Known>,
    /// Definitions whose objects are being deleted, which may take long.
    deletions: JoinSet<String>,
    in_deletion: HashSet<String>,
}

/// What the others of its group have to know of a definition.
struct Known {
    group: String,
    accepted: Value,
    /// Whether it has all the names that it wants.
    is_content: bool,
}

impl Lifecycle {
    async fn run(mut self) {
        while let Some(state) = self.state.upgrade() {
            let (page, mut watch) = state.store.watch_with_state(STORAGE_NAME, None);
            catch_up(&state);
            self.known.clear();
            let definitions: Vec<_> =
                page.records.iter().filter_map(|record| Some((record, read(record).ok()?))).collect();
            for (record, definition) in &definitions {
                self.note(&record.key.name, definition);
            }
            for (record, definition) in &definitions {
                self.step(&state, record, definition).await;
            }
            drop((page, state));
            loop {
                tokio::select! {
                    event = watch.next() => match event {
                        Ok(event) => self.take(&event).await,
                        Err(WatchEnd::Closed) => return,
                        Err(WatchEnd::Lagged { .. }) => break,
                    },
                    Some(Ok(name)) = self.deletions.join_next() => {
                        self.in_deletion.remove(&name);
                        self.look_again(&name).await;
                    }
                }
            }
        }
    }

    async fn take(&mut self, event: &Event) {
        let Some(state) = self.state.upgrade() else {
            return;
        };
        // Watches of what is served no longer end now, not with the next request.
        catch_up(&state);
        let name = event.key().name.to_string();
        let before = self.known.remove(&name);
        if let Some((record, definition)) = event.after().and_then(|after| Some((after, read(after).ok()?))) {
            self.note(&name, &definition);
            self.step(&state, record, &definition).await;
        }
        // A name that was given back may be what another one waits for.
        let after = self.known.get(&name).map(|known| &known.accepted);
        if let Some(before) = before.filter(|before| after != Some(&before.accepted)) {
            let waits = |(_, known): &(&String, &Known)| known.group == before.group && !known.is_content;
            let waiting: Vec<String> = self.known.iter().filter(waits).map(|(name, _)| name.clone()).collect();
            for name in waiting {
                self.look_again(&name).await;
            }
        }
    }

    fn note(&mut self, name: &str, definition: &Value) {
        let accepted = definition["status"]["acceptedNames"].clone();
        let is_content = definition["spec"]["names"] == accepted;
        let group = text(&definition["spec"], "group").to_owned();
        self.known.insert(name.to_owned(), Known { group, accepted, is_content });
    }

    async fn look_again(&mut self, name: &str) {
        let Some(state) = self.state.upgrade() else {
            return;
        };
        if let Some(record) = state.store.get(&Key::new(STORAGE_NAME, "", name))
            && let Ok(definition) = read(&record)
        {
            self.step(&state, &record, &definition).await;
        }
    }

    /// Takes the next step of a definition, if there is one. It shows up as an event and leads to the one after it.
    async fn step(&mut self, state: &Arc<State>, record: &Arc<Record>, definition: &Value) {
        let name = record.key.name.to_string();
        if deletion::is_due(definition) {
            if self.in_deletion.insert(name.clone()) {
                self.deletions.spawn(deletion::complete(self.state.clone(), name));
            }
            return;
        }
        let mut in_use = InUse::default();
        let group = text(&definition["spec"], "group");
        self.known.values().filter(|known| known.group == group).for_each(|known| in_use.add(&known.accepted));
        let Some(next) = accept(definition, &in_use).or_else(|| establish(definition)) else {
            return;
        };
        // The names are this one's from now on, also for those that come before the event does.
        let is_written =
            write::own_status(state, record, |definition| definition["status"] = next["status"].clone()).await;
        match is_written {
            Ok(()) => self.note(&name, &next),
            // Whoever was faster made an event, too.
            Err(error) if matches!(error.reason, Reason::Conflict | Reason::NotFound) => {}
            Err(error) => tracing::warn!(%error, definition = name, "cannot write the status of a definition"),
        }
    }
}

fn establish(definition: &Value) -> Option<Value> {
    if !holds(definition, NAMES_ACCEPTED) || holds(definition, ESTABLISHED) {
        return None;
    }
    let mut new = definition.clone();
    Condition::new(ESTABLISHED, true, "InitialNamesAccepted", "the initial names have been accepted").set(&mut new);
    Some(new)
}
