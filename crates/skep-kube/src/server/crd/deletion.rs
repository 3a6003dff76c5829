//! The end of a definition: its objects go first.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::super::registry::{Origin, Resource};
use super::super::write::now;
use super::super::{State, metadata, write};
use super::conditions::{Condition, ESTABLISHED, TERMINATING, holds};
use super::{STORAGE_NAME, read, text};
use crate::status::{ApiError, Reason};
use crate::store::{Changed, Key, Record, WatchEnd};

/// Holds a definition until its objects are gone.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// How many objects are deleted at once, so that they share writes to the disk.
const AT_ONCE: usize = 64;
/// How often a write is tried again when the definition changes under it.
const ATTEMPTS: usize = 5;
/// What to wait for when the store does not take a change.
const PAUSE: Duration = Duration::from_secs(1);

/// Marks a definition for deletion.
pub fn mark(definition: &mut Value) {
    metadata::set(definition, "deletionTimestamp", Some(now().into()));
    let mut finalizers: Vec<String> = metadata::finalizers(definition).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    metadata::set(definition, "finalizers", Some(json!(finalizers)));
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    Condition::new(TERMINATING, true, "InstanceDeletionPending", message).set(definition);
}

/// Whether a definition waits for its objects to go.
pub fn is_due(definition: &Value) -> bool {
    metadata::is_being_deleted(definition) && metadata::finalizers(definition).contains(&FINALIZER)
}

/// Deletes the objects of a definition, waits for those that have finalizers, and lets the definition go. Gives back
/// its name, for somebody to look whether it is gone.
pub async fn complete(state: Weak<State>, name: String) -> String {
    if let Err(error) = try_to_complete(&state, &name).await {
        tracing::warn!(%error, definition = name, "cannot finish the deletion of a definition");
        tokio::time::sleep(PAUSE).await;
    }
    name
}

async fn try_to_complete(state: &Weak<State>, name: &str) -> Result<(), ApiError> {
    let message = "CustomResource deletion is in progress";
    let in_progress = Condition::new(TERMINATING, true, "InstanceDeletionInProgress", message);
    let Some(definition) = change(state, name, |definition| in_progress.set(definition)).await? else {
        return Ok(());
    };
    let (group, plural) = (text(&definition["spec"], "group"), text(&definition["spec"]["names"], "plural"));
    let resource = state.upgrade().and_then(|state| state.registry.find(group, plural));
    let done = match resource {
        _ if !holds(&definition, ESTABLISHED) => {
            Condition::new(TERMINATING, false, "NeverEstablished", "resource was never established")
        }
        Some(resource) if resource.origin == Origin::Custom => {
            delete_objects(state, &resource).await?;
            Condition::new(TERMINATING, false, "InstanceDeletionCompleted", "removed all instances")
        }
        _ => {
            let message = "instances overlap with built-in resources in storage";
            Condition::new(TERMINATING, false, "OverlappingBuiltInResource", message)
        }
    };
    change(state, name, |definition| {
        done.set(definition);
        let others: Vec<&str> = metadata::finalizers(definition);
        let others: Vec<String> = others.into_iter().filter(|other| *other != FINALIZER).map(str::to_owned).collect();
        metadata::set(definition, "finalizers", (!others.is_empty()).then(|| json!(others)));
    })
    .await?;
    Ok(())
}

/// Changes a definition that is still due, and gives it back as it was before.
async fn change(state: &Weak<State>, name: &str, change: impl Fn(&mut Value)) -> Result<Option<Value>, ApiError> {
    let mut attempt = 1;
    loop {
        let Some(state) = state.upgrade() else {
            return Ok(None);
        };
        let Some(record) = state.store.get(&Key::new(STORAGE_NAME, "", name)) else {
            return Ok(None);
        };
        let definition = read(&record).map_err(|error| ApiError::internal(&error.to_string()))?;
        if !is_due(&definition) {
            return Ok(None);
        }
        match write::own_status(&state, &record, &change).await {
            Ok(()) => return Ok(Some(definition)),
            Err(error) if error.reason == Reason::Conflict && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

async fn delete_all(state: &Arc<State>, resource: &Arc<Resource>, objects: Vec<Arc<Record>>) -> Result<(), ApiError> {
    let delete = |record: Arc<Record>| {
        let (state, resource) = (state.clone(), resource.clone());
        async move { write::delete_own(&state, &resource, &record.key).await }
    };
    let mut deletions = futures::stream::iter(objects).map(delete).buffer_unordered(AT_ONCE);
    while let Some(deleted) = deletions.next().await {
        deleted?;
    }
    Ok(())
}

/// Deletes all objects of a resource and waits until the last one is gone.
async fn delete_objects(state: &Weak<State>, resource: &Arc<Resource>) -> Result<(), ApiError> {
    let storage_name = resource.storage_name();
    while let Some(strong) = state.upgrade() {
        let (page, mut watch) = strong.store.watch_with_state(&storage_name, None);
        let mut left = page.records.len();
        delete_all(&strong, resource, page.records).await?;
        drop(strong);
        // The watch began with the page, so that counting is enough.
        let end = loop {
            if left == 0 {
                return Ok(());
            }
            let event = match watch.next().await {
                Ok(event) => event,
                Err(end) => break end,
            };
            match &event.change {
                Changed::Deleted { .. } => left -= 1,
                Changed::Updated { .. } => {}
                // Somebody began to create it before the definition was marked.
                Changed::Created { after } => {
                    left += 1;
                    if let Some(state) = state.upgrade() {
                        write::delete_own(&state, resource, &after.key).await?;
                    }
                }
            }
        };
        if end == WatchEnd::Closed {
            return Ok(());
        }
    }
    Ok(())
}
