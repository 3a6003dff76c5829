//! The requests that are being answered, so that the client can call them off.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::limits;
use super::message::{Fault, INTERNAL_ERROR, INVALID_REQUEST};

/// Requests of one client.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<String, CancellationToken>>);

/// A request while it runs.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    running: &'a Running,
    key: String,
    pub(crate) cancelled: CancellationToken,
}

impl Running {
    /// Adds a request, which ends with `parent` at the latest.
    pub(crate) fn enter(&self, id: &Value, parent: &CancellationToken) -> Result<Entry<'_>, Fault> {
        let key = id.to_string();
        let mut running = self.0.lock();
        if running.contains_key(&key) {
            return Err(Fault::new(INVALID_REQUEST, format!("a request with id {id} is still running")));
        }
        if running.len() >= limits::RUNNING_REQUESTS {
            return Err(Fault::new(INTERNAL_ERROR, "too many requests at the same time"));
        }
        let cancelled = parent.child_token();
        running.insert(key.clone(), cancelled.clone());
        drop(running);
        Ok(Entry { running: self, key, cancelled })
    }

    /// Calls a request off. One that is not running has been answered already.
    pub(crate) fn cancel(&self, id: &Value) {
        if let Some(request) = self.0.lock().get(&id.to_string()) {
            request.cancel();
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.key);
    }
}
