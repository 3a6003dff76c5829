//! The entities that policies can look at: those of the configuration, and those of the request.

use std::collections::{HashMap, HashSet};

use cedar_policy::{Entities, Entity, EntityUid, RestrictedExpression};

use super::claims::Attributes;
use super::{CedarError, Denied};

/// What is there before anybody asks.
#[derive(Debug)]
pub(super) struct Stage {
    entities: Entities,
    /// The parts of the configured entities. What a request says about one of them is added to it.
    configured: HashMap<EntityUid, Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    attributes: HashMap<String, RestrictedExpression>,
    parents: HashSet<EntityUid>,
    tags: HashMap<String, RestrictedExpression>,
}

impl Parts {
    fn of(entity: &Entity) -> Result<Self, CedarError> {
        let untold = |error: &dyn std::fmt::Display| CedarError::Entities(error.to_string());
        let mut tags = HashMap::new();
        for (name, value) in entity.tags() {
            // Cedar takes values apart, but puts only texts together again.
            let text = value.map_err(|error| untold(&error))?.to_string();
            tags.insert(name.to_owned(), text.parse().map_err(|error| untold(&error))?);
        }
        let (_, attributes, parents) = entity.clone().into_inner();
        Ok(Self { attributes, parents, tags })
    }
}

impl Stage {
    /// Reads entities and adds actions, each of which says its own name.
    pub(super) fn new(json: &str, actions: &[EntityUid]) -> Result<Self, CedarError> {
        let json = if json.trim().is_empty() { "[]" } else { json };
        let unread = |error: &dyn std::fmt::Display| CedarError::Entities(error.to_string());
        let entities = Entities::from_json_str(json, None).map_err(|error| unread(&error))?;
        let parts = |entity: &Entity| Ok((entity.uid(), Parts::of(entity)?));
        let configured = entities.iter().map(parts).collect::<Result<_, CedarError>>()?;
        let mut stage = Self { entities, configured };
        for action in actions {
            let name = RestrictedExpression::new_string(action.id().unescaped().to_owned());
            let attributes = [("operation".to_owned(), name)].into_iter().collect();
            let entities = stage.with(stage.entities.clone(), action, attributes, HashSet::new());
            stage.entities = entities.map_err(|error| unread(&error))?;
        }
        Ok(stage)
    }

    pub(super) fn entities(&self) -> &Entities {
        &self.entities
    }

    /// The same with one more entity. Where the configuration knows it, what is said now wins attribute by attribute.
    pub(super) fn with(
        &self,
        entities: Entities,
        uid: &EntityUid,
        attributes: Attributes,
        parents: HashSet<EntityUid>,
    ) -> Result<Entities, Denied> {
        let unaskable = |error: &dyn std::fmt::Display| Denied::Unaskable(error.to_string());
        let entity = match self.configured.get(uid) {
            None => Entity::new(uid.clone(), attributes.into_iter().collect(), parents),
            Some(parts) => {
                let mut all = parts.attributes.clone();
                all.extend(attributes);
                let parents = parents.into_iter().chain(parts.parents.iter().cloned());
                Entity::new_with_tags(uid.clone(), all, parents, parts.tags.clone())
            }
        };
        let entity = entity.map_err(|error| unaskable(&error))?;
        entities.upsert_entities([entity], None).map_err(|error| unaskable(&error))
    }
}
