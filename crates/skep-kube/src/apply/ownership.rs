//! Who owns what after a write.

use serde_json::Value;

use super::check::{Duplicates, check};
use super::compare::Comparison;
use super::conflict::{ApplyError, Conflict};
use super::entry::{Holding, Owner, Owners};
use super::field_set::FieldSet;
use super::fit::{fitted, with_structs};
use super::merge::merge;
use super::metadata::without_never_owned;
use super::owned::fields_of;
use super::path::same_value;
use super::remove::without;
use super::shape::Place;
use super::target::Target;

/// Hands the fields that a write has changed to whoever wrote them. Both objects must fit the schema.
///
/// Returns what the writer has gained.
pub(super) fn update(target: &Target<'_>, live: &Value, new: &Value, owners: &mut Owners) -> FieldSet {
    let place = Place::Object(target.schema);
    fit(place, owners);
    let found = comparison(target, live, new);
    let changed = found.changed();
    owners.retain(|_, holding| target.knows(&holding.api_version));
    for holding in owners.values_mut() {
        holding.fields = holding.fields.difference(&changed).difference(&found.removed);
    }
    owners.retain(|_, holding| !holding.fields.is_empty());
    without_never_owned(&changed)
}

/// Merges a configuration into the live object and makes the applier the owner of what it says. Returns the new
/// object, or nothing when the object is as it was. Neither object has managed fields.
pub(super) fn apply(
    target: &Target<'_>,
    live: &Value,
    applied: &Value,
    owners: &mut Owners,
    owner: &Owner,
    force: bool,
) -> Result<Option<Value>, ApplyError> {
    let place = Place::Object(target.schema);
    check(place, applied, Duplicates::Refused).map_err(|problem| applied_error(applied, problem))?;
    check(place, live, Duplicates::Allowed).map_err(|problem| live_error(live, problem))?;
    fit(place, owners);

    let merged = merge(place, live, applied);
    let fields = target.ownable.of(&fields_of(place, applied));
    let last = owners.remove(owner);
    let time = last.as_ref().and_then(|last| last.time);
    owners.insert(owner.clone(), Holding { api_version: target.api_version.to_owned(), time, fields });
    let new = match &last {
        Some(last) if !last.fields.is_empty() && target.knows(&last.api_version) => {
            prune(target, &merged, &last.fields, owners)
        }
        _ => merged,
    };

    take(target, live, &new, owners, owner, force)?;
    if let Some(holding) = owners.get_mut(owner) {
        holding.fields = without_never_owned(&holding.fields);
    }
    owners.retain(|_, holding| !holding.fields.is_empty());
    Ok((!same_value(live, &new)).then_some(new))
}

/// Takes changed fields from everybody but the applier, who may do so only by force.
fn take(
    target: &Target<'_>,
    live: &Value,
    new: &Value,
    owners: &mut Owners,
    applier: &Owner,
    force: bool,
) -> Result<(), ApplyError> {
    let found = comparison(target, live, new);
    let changed = found.changed();
    owners.retain(|owner, holding| owner == applier || target.knows(&holding.api_version));
    let others = || owners.iter().filter(|(owner, _)| *owner != applier);
    let conflicts: Vec<Conflict> = others()
        .flat_map(|(owner, holding)| {
            let paths = holding.fields.intersection(&changed).paths();
            paths.into_iter().map(|path| Conflict { owner: owner.clone(), path })
        })
        .collect();
    if !force && !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    for (_, holding) in owners.iter_mut().filter(|(owner, _)| *owner != applier) {
        holding.fields = holding.fields.difference(&changed).difference(&found.removed);
    }
    Ok(())
}

/// Removes what the applier owned by its last configuration and nobody owns now.
///
/// Fields that nobody ever owned go only together with something that is removed around them.
fn prune(target: &Target<'_>, merged: &Value, last: &FieldSet, owners: &Owners) -> Value {
    let place = Place::Object(target.schema);
    let last = with_structs(place, last);
    let all = with_structs(place, &fields_of(place, merged));
    let remaining = |object: &Value| with_structs(place, &fields_of(place, object));

    let without_last = without(place, merged, &last);
    let owned = owners
        .values()
        .filter(|holding| target.knows(&holding.api_version))
        .fold(FieldSet::default(), |all, holding| all.union(&holding.fields));
    let kept = remaining(&without_last).union(&with_structs(place, &owned));
    let with_owned = without(place, merged, &all.difference(&kept));

    // The step before has removed unowned fields that merely stood beside removed ones; they come back here.
    let gone = all.difference(&remaining(&with_owned)).intersection(&last);
    without(place, merged, &gone)
}

fn comparison(target: &Target<'_>, live: &Value, new: &Value) -> Comparison {
    let Comparison { added, modified, removed } = Comparison::between(Place::Object(target.schema), live, new);
    Comparison {
        added: target.ownable.of(&added),
        modified: target.ownable.of(&modified),
        removed: target.ownable.of(&removed),
    }
}

fn fit(place: Place<'_>, owners: &mut Owners) {
    for holding in owners.values_mut() {
        holding.fields = fitted(place, &holding.fields);
    }
}

pub(super) fn applied_error(applied: &Value, problem: String) -> ApplyError {
    ApplyError::Applied { object: describe(applied), problem }
}

pub(super) fn live_error(live: &Value, problem: String) -> ApplyError {
    ApplyError::Live { object: describe(live), problem }
}

/// The merged object is not one of its kind.
pub fn unconvertible(merged: &Value, problem: String) -> ApplyError {
    ApplyError::Merged { object: describe(merged), kind: describe_kind(merged), problem }
}

/// An object as errors name it: `namespace/name; group/version, Kind=Kind`.
fn describe(object: &Value) -> String {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
    format!("{}/{}; {}", text("namespace"), text("name"), describe_kind(object))
}

/// What an object says that it is. The core group is shown as an empty one.
pub fn describe_kind(object: &Value) -> String {
    let text = |member: &str| object[member].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let group = if version.contains('/') { "" } else { "/" };
    format!("{group}{version}, Kind={}", text("kind"))
}
