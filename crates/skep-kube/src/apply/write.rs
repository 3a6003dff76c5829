//! The two ways of writing an object, with all that happens to its managed fields.

use serde_json::Value;

use super::check::{Duplicates, check, check_nesting};
use super::conflict::ApplyError;
use super::entry::{self, Holding, Operation, Owner, Owners};
use super::metadata::{set_managed_fields, without_managed_fields};
use super::path::same_value;
use super::shape::Place;
use super::target::Target;
use super::{cap, last_applied, ownership};

/// Owns what an object was before anybody applied to it, where that is not known.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";
const UNKNOWN: &str = "unknown";

/// Writes the managed fields of `new`, which is about to be created (`live` is none) or to replace `live`: `manager`
/// owns what has changed. `now` is in RFC 3339; an empty one leaves the time of the entry away, as writes to the scale
/// of an object do on the real server.
///
/// An object that was stripped of its managed fields, by a request with a single empty entry, has none until something
/// is applied to it; one that does not fit its schema loses them.
pub fn update(target: &Target<'_>, live: Option<&Value>, new: &mut Value, manager: &str, now: &str) {
    let is_too_deep = live.into_iter().chain([&*new]).any(|object| check_nesting(object).is_err());
    let mut owners = if is_too_deep { Owners::new() } else { owners_for_update(target, live, new) };
    set_managed_fields(new, Vec::new());
    if is_too_deep || live.is_some() && owners.is_empty() {
        return;
    }
    let before = without_managed_fields(live.unwrap_or(target.blank));
    if record_update(target, &before, new, &mut owners, manager, now) {
        set_managed_fields(new, entry::write(&owners));
    }
}

/// The owners that a request starts from: those that it brings, or else those of the live object. Clients that know
/// nothing of managed fields must not remove them by accident; a single empty entry says that it is no accident.
fn owners_for_update(target: &Target<'_>, live: Option<&Value>, new: &Value) -> Owners {
    let of_live = || live.and_then(|live| entry::read(live).ok()).unwrap_or_default();
    if !target.subresource.is_empty() {
        return of_live();
    }
    if let Some([only]) = new["metadata"]["managedFields"].as_array().map(Vec::as_slice)
        && only.as_object().is_some_and(serde_json::Map::is_empty)
    {
        return Owners::new();
    }
    match entry::read(new) {
        Ok(owners) if !owners.is_empty() => owners,
        _ => of_live(),
    }
}

/// False when ownership cannot be told, because one of the objects does not fit the schema.
fn record_update(
    target: &Target<'_>,
    live: &Value,
    new: &Value,
    owners: &mut Owners,
    manager: &str,
    now: &str,
) -> bool {
    let place = Place::Object(target.schema);
    if check(place, live, Duplicates::Allowed).is_err() || check(place, new, Duplicates::Allowed).is_err() {
        return false;
    }
    let gained = ownership::update(target, live, new, owners);
    if !gained.is_empty() {
        let owner = owner(target, manager, Operation::Update);
        let had = owners.remove(&owner).map(|holding| holding.fields).unwrap_or_default();
        let holding = Holding {
            api_version: target.api_version.to_owned(),
            time: entry::read_time(now),
            fields: had.union(&gained),
        };
        owners.insert(owner, holding);
    }
    cap::forget_old_updates(owners);
    true
}

fn owner(target: &Target<'_>, manager: &str, operation: Operation) -> Owner {
    Owner {
        manager: if manager.is_empty() { UNKNOWN } else { manager }.to_owned(),
        operation,
        api_version: (operation == Operation::Update).then(|| target.api_version.to_owned()),
        subresource: target.subresource.to_owned(),
    }
}

/// Merges an applied configuration into the live object, or makes a new object of it: fields that `manager` applied
/// before and no longer does are removed unless somebody else owns them. Without `force`, changing what others own
/// is a conflict.
pub fn apply(
    target: &Target<'_>,
    live: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
    now: &str,
) -> Result<Value, ApplyError> {
    if !applied["metadata"]["managedFields"].is_null() {
        return Err(ApplyError::ManagedFieldsSet);
    }
    check_nesting(applied).map_err(|problem| ownership::applied_error(applied, problem))?;
    if let Some(live) = live {
        check_nesting(live).map_err(|problem| ownership::live_error(live, problem))?;
    }
    let applied = without_managed_fields(applied);
    let nothing = Value::Object(serde_json::Map::new());
    let mut owners = match live {
        Some(live) => entry::read(live).map_err(|error| ApplyError::LiveManagedFields(error.to_string()))?,
        None => Owners::new(),
    };
    let before = without_managed_fields(live.unwrap_or(&nothing));
    if live.is_some() && owners.is_empty() {
        record_update(target, target.blank, &before, &mut owners, BEFORE_FIRST_APPLY, now);
    }

    let owner = owner(target, manager, Operation::Apply);
    let mut attempt = owners.clone();
    let mut result = ownership::apply(target, &before, &applied, &mut attempt, &owner, force);
    if let Err(ApplyError::Conflicts(conflicts)) = result {
        let remaining = last_applied::conflicts_to_report(target, &before, manager, conflicts);
        if !remaining.is_empty() {
            return Err(ApplyError::Conflicts(remaining));
        }
        attempt = owners;
        result = ownership::apply(target, &before, &applied, &mut attempt, &owner, true);
    }

    // Applying what is already so is no event, not even for a new owner.
    let changed = result?;
    if let (Some(holding), true) = (attempt.get_mut(&owner), changed.is_some()) {
        holding.time = entry::read_time(now);
    }
    let mut new = changed.unwrap_or(before);
    set_managed_fields(&mut new, entry::write(&attempt));
    last_applied::keep_current(&mut new, &applied, manager);
    Ok(new)
}

/// Takes back new times of managed fields when nothing else has changed, so that a write without effect stays one.
/// To be called last, when `new` is as it would be stored.
pub fn keep_times(live: &Value, new: &mut Value) {
    if check_nesting(live).and(check_nesting(new)).is_err() {
        return;
    }
    let (Ok(before), Ok(mut after)) = (entry::read(live), entry::read(new)) else { return };
    if !same_value(&without_managed_fields(live), &without_managed_fields(new)) {
        return;
    }
    for (owner, holding) in &mut after {
        match before.get(owner) {
            Some(known) => holding.time = known.time,
            None => return,
        }
    }
    if before == after {
        set_managed_fields(new, entry::write(&before));
    }
}
