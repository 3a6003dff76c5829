//! What the server adds to new objects by itself: accounts and tolerations of pods, addresses and ports of services.

use parking_lot::Mutex;
use serde_json::Value;

use super::State;
use super::exchange::Exchange;
use super::metadata;
use crate::builtin::{self, Allocations, Builtin};
use crate::names::generate_name;
use crate::status::{ApiError, FieldError};
use crate::store::{Key, Selection};

/// Addresses of services, as clusters have them by default.
const SERVICE_RANGE: (std::net::Ipv4Addr, u8) = (std::net::Ipv4Addr::new(10, 96, 0, 0), 16);
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// What services have been given.
#[derive(Debug)]
pub(crate) struct Addresses(Mutex<Allocations>);

impl Default for Addresses {
    fn default() -> Self {
        Self(Mutex::new(Allocations::new(SERVICE_RANGE, NODE_PORTS)))
    }
}

impl State {
    /// Adds what admission adds to a new object.
    pub(crate) fn admit(&self, exchange: &Exchange, kind: &Builtin, object: &mut Value) -> Result<(), ApiError> {
        match kind.kind {
            "Pod" => {
                let account = self.service_account(exchange, object)?;
                let suffix = generate_name("");
                builtin::admit_service_account(object, &account, &suffix);
                builtin::admit_pod(object);
            }
            "Node" => builtin::admit_node(object),
            _ => {}
        }
        Ok(())
    }

    /// The service account of a pod, which must be there. Nobody has to wait for the default one, which is the same
    /// everywhere: where no controllers run it is never made.
    fn service_account(&self, exchange: &Exchange, pod: &Value) -> Result<Value, ApiError> {
        let (namespace, name) = (metadata::namespace(pod), builtin::service_account_of(pod));
        match self.store.get(&Key::new("/serviceaccounts", namespace, name)) {
            Some(record) => Ok(serde_json::from_slice(&record.object).unwrap_or_default()),
            None if name == builtin::DEFAULT_ACCOUNT => Ok(Value::Null),
            None => {
                let why =
                    format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
                Err(ApiError::forbidden(&exchange.resource.name(), metadata::name(pod), &why))
            }
        }
    }

    /// Gives a service its addresses and ports. What is in use is read from the store each time: services are few, and
    /// nothing can be forgotten.
    pub(crate) fn allocate(&self, kind: &Builtin, new: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
        if kind.kind != "Service" {
            return Vec::new();
        }
        let mut allocations = self.addresses.0.lock();
        allocations.used_addresses.clear();
        allocations.used_ports.clear();
        for record in self.store.list(&Selection::all("/services")).records {
            let service: Value = serde_json::from_slice(&record.object).unwrap_or_default();
            if old.is_none_or(|old| metadata::uid(old) != metadata::uid(&service)) {
                note(&service, &mut allocations);
            }
        }
        let seed = u32::try_from(self.store.revision() % u64::from(u32::MAX)).unwrap_or_default();
        match builtin::allocate(new, &mut allocations, seed) {
            Ok(_) => Vec::new(),
            Err(error) => vec![error],
        }
    }
}

fn note(service: &Value, allocations: &mut Allocations) {
    let addresses = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
    allocations
        .used_addresses
        .extend(addresses.filter_map(|address| address.as_str()?.parse::<std::net::Ipv4Addr>().ok()));
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    allocations.used_ports.extend(ports.filter_map(|port| u16::try_from(port["nodePort"].as_u64()?).ok()));
}
