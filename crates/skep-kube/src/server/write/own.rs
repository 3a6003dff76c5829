//! What the server itself writes, without anybody asking.

use std::sync::Arc;

use serde_json::Value;

use super::super::State;
use super::super::exchange::Exchange;
use super::super::read;
use super::super::registry::Resource;
use super::delete::{delete_one, delete_record, finalize};
use super::delete_options::DeleteOptions;
use super::draft::{self, Ownership};
use crate::status::{ApiError, Reason};
use crate::store::{Key, Record};

/// The name under which the server owns what it writes.
const MANAGER: &str = "kube-apiserver";

/// Changes the status of an object, on the condition that it has not changed since it was read.
pub async fn own_status(state: &State, record: &Arc<Record>, change: impl FnOnce(&mut Value)) -> Result<(), ApiError> {
    let (group, plural) = record.key.resource.split_once('/').unwrap_or_default();
    let resource = state.registry.find(group, plural).ok_or_else(ApiError::no_such_path)?;
    let exchange = Exchange::own(resource, &record.key, Some("status"))?;
    let old = read::load(&exchange, record)?;
    let mut new = old.clone();
    change(&mut new);
    let ownership = Ownership::Update { manager: MANAGER };
    let draft = draft::finish(state, &exchange, new, Some((record, &old)), "status", ownership)?;
    finalize(state, &exchange, draft).await?;
    Ok(())
}

/// Deletes an event of the store, on the condition that it is still as it was read.
pub async fn expire(state: &State, record: &Arc<Record>) -> Result<(), ApiError> {
    let resource = state.registry.find("", "events").ok_or_else(ApiError::no_such_path)?;
    let exchange = Exchange::own(resource, &record.key, None)?;
    delete_one(state, &exchange, record, &DeleteOptions::default()).await.map(drop)
}

/// Deletes an object, as far as its finalizers let it go.
pub async fn delete_own(state: &State, resource: &Arc<Resource>, key: &Key) -> Result<(), ApiError> {
    let exchange = Exchange::own(resource.clone(), key, None)?;
    let Some(record) = state.store.get(key) else { return Ok(()) };
    match delete_record(state, &exchange, record, &DeleteOptions::default()).await {
        Err(error) if error.reason == Reason::NotFound => Ok(()),
        outcome => outcome.map(drop),
    }
}
