//! What the server adds to new objects by itself: accounts and tolerations of pods, addresses and ports of services.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::State;
use super::exchange::Exchange;
use super::metadata;
use crate::builtin::{self, Allocations, Builtin, Granted};
use crate::names::{asked_name, generate_name};
use crate::status::{ApiError, FieldError};
use crate::store::{Key, Selection};

const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// Where the store keeps the classes of priorities.
pub(super) const PRIORITIES: &str = "scheduling.k8s.io/priorityclasses";

/// What is given to services that are not in the store yet.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Arc<Mutex<Vec<Promised>>>);

#[derive(Debug)]
struct Promised {
    /// Two writes of one service do not compete: the store takes one of them.
    service: Key,
    granted: Granted,
}

/// Keeps what a service was given from all others until the service is in the store, or will not be.
#[derive(Debug)]
pub(crate) struct Promise {
    all: Arc<Mutex<Vec<Promised>>>,
    service: Key,
    granted: Granted,
}

impl Drop for Promise {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        let kept = all.iter().position(|one| one.service == self.service && one.granted == self.granted);
        if let Some(position) = kept {
            all.swap_remove(position);
        }
    }
}

/// The refusal of a pod that has no name yet but the one that it asks for, so that all pods of a set are refused in the
/// same words.
fn forbidden(exchange: &Exchange, pod: &Value, why: &str) -> ApiError {
    let name = asked_name(metadata::name(pod), metadata::text(pod, "generateName"));
    ApiError::forbidden(&exchange.resource.name(), name, why)
}

impl State {
    /// Adds what admission adds to a new object.
    pub(crate) fn admit(&self, exchange: &Exchange, kind: &Builtin, object: &mut Value) -> Result<(), ApiError> {
        match kind.kind {
            "Pod" => {
                let account = self.service_account(exchange, object)?;
                let suffix = generate_name("");
                builtin::admit_service_account(object, &account, &suffix);
                let forbidden = |pod: &Value, why: &str| forbidden(exchange, pod, why);
                builtin::admit_priority(object, &self.priorities()).map_err(|why| forbidden(object, &why))?;
                builtin::admit_pod(object);
                if let Some(class) = object["spec"]["runtimeClassName"].as_str().filter(|class| !class.is_empty()) {
                    // There are no such classes here.
                    return Err(forbidden(object, &format!("pod rejected: RuntimeClass {class:?} not found")));
                }
            }
            "Node" => builtin::admit_node(object),
            _ => {}
        }
        Ok(())
    }

    /// What depends on other objects, once a new or changed object is known to be in order.
    pub(crate) fn admit_valid(
        &self,
        exchange: &Exchange,
        kind: &Builtin,
        new: &Value,
        is_new: bool,
    ) -> Result<(), ApiError> {
        let outcome = match kind.kind {
            "Pod" if is_new && new["spec"]["overhead"].as_object().is_some_and(|overhead| !overhead.is_empty()) => {
                Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".to_owned())
            }
            "PriorityClass" => builtin::check_default_priority(new, &self.priorities()),
            _ => Ok(()),
        };
        outcome.map_err(|why| ApiError::forbidden(&exchange.resource.name(), metadata::name(new), &why))
    }

    /// The classes of priorities.
    fn priorities(&self) -> Vec<Value> {
        let records = self.store.list(&Selection::all(PRIORITIES)).records;
        records.iter().filter_map(|record| serde_json::from_slice(&record.object.bytes()).ok()).collect()
    }

    /// The service account of a pod, which must be there. Nobody has to wait for the default one, which is the same
    /// everywhere: where no controllers run it is never made.
    fn service_account(&self, exchange: &Exchange, pod: &Value) -> Result<Value, ApiError> {
        let (namespace, name) = (metadata::namespace(pod), builtin::service_account_of(pod));
        match self.store.get(&Key::new("/serviceaccounts", namespace, name)) {
            Some(record) => Ok(serde_json::from_slice(&record.object.bytes()).unwrap_or_default()),
            None if name == builtin::DEFAULT_ACCOUNT => Ok(Value::Null),
            None => {
                let why =
                    format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
                Err(forbidden(exchange, pod, &why))
            }
        }
    }

    /// Gives a service its addresses and ports. What is in use is read from the store each time: services are few, and
    /// nothing can be forgotten. What is given out is promised for as long as the caller holds the promise.
    pub(crate) fn allocate(
        &self,
        kind: &Builtin,
        new: &mut Value,
        old: Option<&Value>,
    ) -> Result<Option<Promise>, FieldError> {
        if kind.kind != "Service" {
            return Ok(None);
        }
        let service = Key::new("/services", metadata::namespace(new), metadata::name(new));
        let range = self.service_range.get().copied().unwrap_or_default();
        let mut allocations =
            Allocations::new(range.bounds(), NODE_PORTS, vec![range.api_server(), range.name_server()]);
        // From here on nobody takes a promise back, so that a service is among the promised or in the store.
        let mut promised = self.addresses.0.lock();
        for one in promised.iter().filter(|one| one.service != service) {
            allocations.note(&one.granted);
        }
        for record in self.store.list(&Selection::all("/services")).records {
            if old.is_none() || record.key != service {
                allocations.note(&Granted::of(&serde_json::from_slice(&record.object.bytes()).unwrap_or_default()));
            }
        }
        let seed = u32::try_from(self.store.revision() % u64::from(u32::MAX)).unwrap_or_default();
        let granted = builtin::allocate(new, &allocations, seed)?;
        promised.push(Promised { service: service.clone(), granted: granted.clone() });
        Ok(Some(Promise { all: self.addresses.0.clone(), service, granted }))
    }
}
