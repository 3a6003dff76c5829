//! The status of a config object: what it should be, from what is known of the object and its users.

use skep_api::conditions::{self, Statement, reasons, types};
use skep_api::hash::config_hash;
use skep_api::kinds::config_status::ConfigStatus;

use super::users::Users;
use super::{Complaint, ConfigKind};
use crate::failure::Failure;
use crate::time::now;

/// What the message of a valid object says.
const PASSED: &str = "Spec validation passed";

/// The status of an object that is not being deleted. An invalid spec leaves the hash of the last valid one in place.
pub(super) fn judged<K: ConfigKind>(
    object: &K,
    verdict: &Result<(), Complaint>,
    users: Users,
) -> Result<ConfigStatus, Failure> {
    let generation = object.meta().generation;
    let mut status = released(object);
    let statement = match verdict {
        Ok(()) => Statement::holds(types::VALID, K::REASONS.0, PASSED),
        Err(complaint) => {
            Statement::fails(types::VALID, complaint.reason.unwrap_or(K::REASONS.1), complaint.message.as_str())
        }
    };
    let now = now();
    conditions::set(&mut status.conditions, statement, generation, &now);
    let mut advice = object.advice();
    for type_ in K::ADVICE {
        match advice.iter().position(|statement| statement.type_ == *type_) {
            Some(found) => conditions::set(&mut status.conditions, advice.swap_remove(found), generation, &now),
            None => conditions::remove(&mut status.conditions, type_),
        };
    }
    if verdict.is_ok() {
        status.config_hash = Some(config_hash(object.spec())?);
        status.observed_generation = generation;
    }
    users.note(&mut status);
    Ok(status)
}

/// The status of an object that is to be deleted and cannot be yet.
pub(super) fn blocked<K: ConfigKind>(object: &K, users: Users) -> ConfigStatus {
    let mut status = object.status().cloned().unwrap_or_default();
    let message = format!("Cannot delete: referenced by workloads: {users}");
    let statement = Statement::holds(types::DELETION_BLOCKED, reasons::REFERENCED_BY_WORKLOADS, message);
    conditions::set(&mut status.conditions, statement, object.meta().generation, &now());
    users.note(&mut status);
    status
}

/// The status of an object that nobody uses and nothing holds.
pub(super) fn released<K: ConfigKind>(object: &K) -> ConfigStatus {
    let mut status = object.status().cloned().unwrap_or_default();
    conditions::remove(&mut status.conditions, types::DELETION_BLOCKED);
    Users::default().note(&mut status);
    status
}
