//! The entities that policies can look at: those of the configuration, and those of the request. There may be very many of
//! the former, and Cedar looks at all that it is given, so that it is given those that a question can lead to.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use cedar_policy::{Entities, Entity, EntityUid, EvalResult, Policy, RestrictedExpression};
use serde_json::Value;

use super::claims::Attributes;
use super::{CedarError, Denied, mistakes};

/// What is there before anybody asks.
#[derive(Debug)]
pub(super) struct Stage {
    /// What every question can lead to: the actions, what conditions name, and all beyond.
    named: Entities,
    configured: HashMap<EntityUid, Parts>,
}

/// A configured entity, and its parts. What a request says about it is added to them.
#[derive(Debug)]
struct Parts {
    entity: Entity,
    attributes: HashMap<String, RestrictedExpression>,
    parents: HashSet<EntityUid>,
    tags: HashMap<String, RestrictedExpression>,
    /// Those that it names: its parents, and what its attributes and tags speak about.
    beyond: HashSet<EntityUid>,
}

impl Parts {
    fn of(entity: &Entity) -> Result<Self, CedarError> {
        let untold = |error: &dyn Display| CedarError::Entities(error.to_string());
        let (_, attributes, parents) = entity.clone().into_inner();
        let mut beyond = parents.clone();
        for (_, value) in entity.attrs() {
            collect(&value.map_err(|error| untold(&error))?, &mut beyond);
        }
        let mut tags = HashMap::new();
        for (name, value) in entity.tags() {
            let value = value.map_err(|error| untold(&error))?;
            collect(&value, &mut beyond);
            // Cedar takes values apart, but puts only texts together again.
            tags.insert(name.to_owned(), value.to_string().parse().map_err(|error| untold(&error))?);
        }
        Ok(Self { entity: entity.clone(), attributes, parents, tags, beyond })
    }
}

/// Collects the entities that a value speaks about.
fn collect(value: &EvalResult, found: &mut HashSet<EntityUid>) {
    match value {
        EvalResult::EntityUid(uid) => {
            found.insert(uid.clone());
        }
        EvalResult::Set(items) => items.iter().for_each(|item| collect(item, found)),
        EvalResult::Record(members) => members.iter().for_each(|(_, member)| collect(member, found)),
        EvalResult::Bool(_) | EvalResult::Long(_) | EvalResult::String(_) | EvalResult::ExtensionValue(_) => {}
    }
}

/// An entity of a request.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) entity: Entity,
    /// The configured entities that it leads to.
    reached: HashSet<EntityUid>,
}

impl Stage {
    /// Reads entities and adds actions, each of which says its own name.
    pub(super) fn new(json: &str, actions: &[EntityUid], policies: &[Policy]) -> Result<Self, CedarError> {
        let json = if json.trim().is_empty() { "[]" } else { json };
        let unread = |error: &dyn std::error::Error| CedarError::Entities(mistakes::whole(error));
        let all = Entities::from_json_str(json, None).map_err(|error| unread(&error))?;
        let parts = |entity: &Entity| Ok((entity.uid(), Parts::of(entity)?));
        let configured = all.iter().map(parts).collect::<Result<_, CedarError>>()?;
        let mut stage = Self { named: Entities::empty(), configured };
        let named = stage.configured(&stage.reached(&named(policies)));
        stage.named = Entities::from_entities(named, None).map_err(|error| unread(&error))?;
        let action = |uid: &EntityUid| {
            let name = RestrictedExpression::new_string(uid.id().unescaped().to_owned());
            stage.entity(uid, [("operation".to_owned(), name)].into(), HashSet::new())
        };
        let actions = actions.iter().map(action).collect::<Result<Vec<_>, _>>();
        let named = actions.and_then(|actions| stage.with(&actions.iter().collect::<Vec<_>>()));
        stage.named = named.map_err(|error| unread(&error))?;
        Ok(stage)
    }

    /// These, and everything that they can lead to. Cedar looks at all of it anew each time, so that they come together.
    pub(super) fn with(&self, staged: &[&Staged]) -> Result<Entities, Denied> {
        let reached = staged.iter().flat_map(|staged| &staged.reached);
        let reached: HashSet<_> = reached.filter(|uid| self.named.get(uid).is_none()).cloned().collect();
        // Of two that are the same, the last one counts.
        let entities = self.configured(&reached).into_iter().chain(staged.iter().map(|staged| staged.entity.clone()));
        let all = self.named.clone().upsert_entities(entities, None);
        all.map_err(|error| Denied::Unaskable(error.to_string()))
    }

    /// An entity of a request. Where the configuration knows it, what is said now wins attribute by attribute.
    pub(super) fn entity(
        &self,
        uid: &EntityUid,
        attributes: Attributes,
        mut parents: HashSet<EntityUid>,
    ) -> Result<Staged, Denied> {
        let mut reached = self.reached(&parents);
        let entity = match self.configured.get(uid) {
            None => Entity::new(uid.clone(), attributes.into_iter().collect(), parents),
            Some(parts) => {
                reached.extend(self.reached(&parts.beyond));
                let mut all = parts.attributes.clone();
                all.extend(attributes);
                parents.extend(parts.parents.iter().cloned());
                Entity::new_with_tags(uid.clone(), all, parents, parts.tags.clone())
            }
        };
        let entity = entity.map_err(|error| Denied::Unaskable(error.to_string()))?;
        Ok(Staged { entity, reached })
    }

    /// The configured entities among these, and all that these lead to.
    fn reached<'a>(&'a self, from: impl IntoIterator<Item = &'a EntityUid>) -> HashSet<EntityUid> {
        let mut next: Vec<_> = from.into_iter().collect();
        let mut reached = HashSet::new();
        while let Some(uid) = next.pop() {
            if let Some(parts) = self.configured.get(uid)
                && reached.insert(uid.clone())
            {
                next.extend(&parts.beyond);
            }
        }
        reached
    }

    fn configured(&self, uids: &HashSet<EntityUid>) -> Vec<Entity> {
        uids.iter().filter_map(|uid| self.configured.get(uid)).map(|parts| parts.entity.clone()).collect()
    }
}

/// The entities that conditions of policies name. Those that scopes name are compared with what is there, and nobody looks at
/// them.
fn named(policies: &[Policy]) -> Vec<EntityUid> {
    let mut found = Vec::new();
    for policy in policies {
        match policy.to_json() {
            Ok(policy) => literals(policy.get("conditions").unwrap_or(&policy), &mut found),
            Err(_) => found.extend(policy.entity_literals()),
        }
    }
    found
}

fn literals(expression: &Value, found: &mut Vec<EntityUid>) {
    match expression {
        Value::Object(members) => {
            let named = members.get("__entity").and_then(|named| EntityUid::from_json(named.clone()).ok());
            found.extend(named);
            members.values().for_each(|member| literals(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| literals(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
