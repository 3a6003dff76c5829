//! The status of a config object: what it should be, from what is known of the object and its users.

use skep_api::conditions::{self, Statement, reasons, types};
use skep_api::hash::config_hash;
use skep_api::kinds::config_status::ConfigStatus;

use super::users::Users;
use super::{ConfigKind, Verdict};
use crate::failure::Failure;
use crate::time::now;

/// What the message of a valid object says.
const PASSED: &str = "Spec validation passed";

/// The status of an object that exists. One that is to be deleted and is still used counts as before: its users go on, and
/// follow its changes. Without a verdict, what was said about the spec stands.
pub(super) fn judged<K: ConfigKind>(
    object: &K,
    verdict: Option<&Verdict>,
    users: Users,
) -> Result<ConfigStatus, Failure> {
    let (generation, now) = (object.meta().generation, now());
    let mut status = object.status().cloned().unwrap_or_default();
    if let Some(verdict) = verdict {
        judge(&mut status, object, verdict)?;
    }
    if object.meta().deletion_timestamp.is_some() {
        let message = format!("Cannot delete: referenced by workloads: {users}");
        let statement = Statement::holds(types::DELETION_BLOCKED, reasons::REFERENCED_BY_WORKLOADS, message);
        conditions::set(&mut status.conditions, statement, generation, &now);
    } else {
        conditions::remove(&mut status.conditions, types::DELETION_BLOCKED);
    }
    users.note(&mut status);
    Ok(status)
}

/// Says what there is to say about the spec. An invalid one leaves the hash of the last valid one in place.
fn judge<K: ConfigKind>(status: &mut ConfigStatus, object: &K, verdict: &Verdict) -> Result<(), Failure> {
    let (generation, now) = (object.meta().generation, now());
    let statement = match verdict {
        Ok(()) => Statement::holds(types::VALID, K::REASONS.0, PASSED),
        Err(complaint) => {
            Statement::fails(types::VALID, complaint.reason.unwrap_or(K::REASONS.1), complaint.message.as_str())
        }
    };
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
    Ok(())
}

/// The status of an object that nobody uses and nothing holds.
pub(super) fn released<K: ConfigKind>(object: &K) -> ConfigStatus {
    let mut status = object.status().cloned().unwrap_or_default();
    conditions::remove(&mut status.conditions, types::DELETION_BLOCKED);
    Users::default().note(&mut status);
    status
}
