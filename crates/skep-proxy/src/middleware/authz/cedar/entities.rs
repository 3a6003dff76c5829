//! The entities that policies can look at: those of the configuration, and those of the request.

use std::collections::{HashMap, HashSet};

use cedar_policy::{Entities, Entity, EntityUid, RestrictedExpression};

use super::claims::Attributes;
use super::{CedarError, Denied, mistakes};

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
        let unread = |error: &dyn std::error::Error| CedarError::Entities(mistakes::whole(error));
        let entities = Entities::from_json_str(json, None).map_err(|error| unread(&error))?;
        let parts = |entity: &Entity| Ok((entity.uid(), Parts::of(entity)?));
        let configured = entities.iter().map(parts).collect::<Result<_, CedarError>>()?;
        let mut stage = Self { entities, configured };
        let action = |uid: &EntityUid| {
            let name = RestrictedExpression::new_string(uid.id().unescaped().to_owned());
            stage.entity(uid, [("operation".to_owned(), name)].into(), HashSet::new())
        };
        let actions = actions.iter().map(action).collect::<Result<Vec<_>, _>>();
        let entities = actions.and_then(|actions| stage.with(actions)).map_err(|error| unread(&error))?;
        stage.entities = entities;
        Ok(stage)
    }

    /// Everything that is there, and these. Cedar looks at all of it anew each time, so that they come together.
    pub(super) fn with(&self, entities: impl IntoIterator<Item = Entity>) -> Result<Entities, Denied> {
        let all = self.entities.clone().upsert_entities(entities, None);
        all.map_err(|error| Denied::Unaskable(error.to_string()))
    }

    /// An entity of a request. Where the configuration knows it, what is said now wins attribute by attribute.
    pub(super) fn entity(
        &self,
        uid: &EntityUid,
        attributes: Attributes,
        parents: HashSet<EntityUid>,
    ) -> Result<Entity, Denied> {
        let entity = match self.configured.get(uid) {
            None => Entity::new(uid.clone(), attributes.into_iter().collect(), parents),
            Some(parts) => {
                let mut all = parts.attributes.clone();
                all.extend(attributes);
                let parents = parents.into_iter().chain(parts.parents.iter().cloned());
                Entity::new_with_tags(uid.clone(), all, parents, parts.tags.clone())
            }
        };
        entity.map_err(|error| Denied::Unaskable(error.to_string()))
    }
}
