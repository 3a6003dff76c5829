//! What a place of an object is to field ownership: a scalar, a list or a map, and whether it is owned as a whole.
//!
//! A place without a known type is what its value is: a scalar, an atomic list, or a map whose members are such places.

use serde_json::Value;

use super::metadata;
use super::path::{Literal, PathElement};
use crate::schema::{ListType, Schema, Type};

/// A place of an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// A whole object, with a type and metadata.
    Object(&'a Schema),
    /// Some place inside, with its schema.
    Inside(&'a Schema),
    /// A place without a type. Maps are owned member by member.
    Deduced,
    /// A place without a type that is owned as a whole.
    Opaque,
}

/// What may stand at a place. Several may, where the type is not known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shape<'a> {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<List<'a>>,
    pub(super) map: Option<Map<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Any,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    /// How the items are told apart.
    pub(super) identity: Identity<'a>,
    pub(super) items: Place<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Identity<'a> {
    /// Not at all: the list is owned as a whole.
    Atomic,
    Value,
    Keys(&'a [String]),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Map<'a> {
    schema: Option<&'a Schema>,
    /// Whether the map is an object with `apiVersion`, `kind` and `metadata`.
    whole: bool,
    pub(super) atomic: bool,
    /// What members are that have no schema of their own, if there may be such.
    pub(super) others: Option<Place<'a>>,
}

impl<'a> Place<'a> {
    pub(super) fn shape(self) -> Shape<'a> {
        match self {
            Self::Object(schema) => Shape { map: Some(map(schema, true)), ..Shape::default() },
            Self::Inside(schema) => shape_of(schema),
            Self::Deduced => untyped(false, Place::Deduced),
            Self::Opaque => untyped(true, Place::Opaque),
        }
    }
}

const fn untyped(atomic: bool, others: Place<'_>) -> Shape<'_> {
    Shape {
        scalar: Some(Scalar::Any),
        list: Some(List { identity: Identity::Atomic, items: Place::Opaque }),
        map: Some(Map { schema: None, whole: false, atomic, others: Some(others) }),
    }
}

fn shape_of(schema: &Schema) -> Shape<'_> {
    let scalar = |scalar| Shape { scalar: Some(scalar), ..Shape::default() };
    if schema.int_or_string {
        return untyped(false, Place::Deduced);
    }
    match schema.type_ {
        Some(Type::String) => scalar(Scalar::Text),
        Some(Type::Boolean) => scalar(Scalar::Boolean),
        Some(Type::Integer | Type::Number) => scalar(Scalar::Numeric),
        Some(Type::Array) => Shape { list: Some(list(schema)), ..Shape::default() },
        Some(Type::Object) if says_nothing_of_members(schema) => untyped(true, Place::Opaque),
        Some(Type::Object) => Shape { map: Some(map(schema, schema.embedded_resource)), ..Shape::default() },
        None if schema.preserve_unknown_fields => untyped(false, Place::Deduced),
        // A definition that another one refers to, with a description or default of its own beside.
        None => match schema.all_of.as_slice() {
            [definition] => shape_of(definition),
            _ if !schema.one_of.is_empty() || !schema.any_of.is_empty() => scalar(Scalar::Any),
            _ => untyped(true, Place::Opaque),
        },
    }
}

fn says_nothing_of_members(schema: &Schema) -> bool {
    schema.properties.is_empty()
        && schema.additional_properties.is_none()
        && !schema.preserve_unknown_fields
        && !schema.embedded_resource
}

fn list(schema: &Schema) -> List<'_> {
    let identity = match &schema.list_type {
        ListType::Atomic => Identity::Atomic,
        ListType::Set => Identity::Value,
        ListType::Map(keys) => Identity::Keys(keys),
    };
    List { identity, items: schema.items.as_deref().map_or(Place::Opaque, Place::Inside) }
}

fn map(schema: &Schema, whole: bool) -> Map<'_> {
    let unknown = schema.preserve_unknown_fields.then_some(Place::Deduced);
    Map {
        schema: Some(schema),
        whole,
        atomic: schema.atomic_map,
        others: schema.additional_properties.as_deref().map(Place::Inside).or(unknown),
    }
}

impl<'a> Shape<'a> {
    /// The shape that a value has, among those that it may have.
    pub(super) fn of(self, value: Option<&Value>) -> Self {
        match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) if self.scalar.is_some() => {
                Shape { scalar: self.scalar, ..Shape::default() }
            }
            Some(Value::Array(_)) if self.list.is_some() => Shape { list: self.list, ..Shape::default() },
            Some(Value::Object(_)) if self.map.is_some() => Shape { map: self.map, ..Shape::default() },
            _ => self,
        }
    }

    /// Whether two shapes of one place are the same.
    pub(super) const fn is_like(&self, other: &Self) -> bool {
        self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
            && self.map.is_some() == other.map.is_some()
    }

    /// What to treat the place as, where several are possible: that is only so for null.
    pub(super) const fn kind(&self) -> Kind<'a> {
        match (self.map, self.list) {
            (Some(map), _) => Kind::Map(map),
            (None, Some(list)) if self.scalar.is_none() => Kind::List(list),
            _ => Kind::Scalar,
        }
    }
}

/// The one thing that a place is treated as.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    Scalar,
    List(List<'a>),
    Map(Map<'a>),
}

impl<'a> Map<'a> {
    /// The place of a member that the schema names.
    pub(super) fn field(&self, name: &str) -> Option<Place<'a>> {
        if self.whole
            && let Some(schema) = metadata::member(name)
        {
            return Some(Place::Inside(schema));
        }
        self.schema?.properties.get(name).map(|property| Place::Inside(property))
    }

    /// The place of any member.
    pub(super) fn member(&self, name: &str) -> Option<Place<'a>> {
        self.field(name).or(self.others)
    }

    /// Whether nothing at all is known about the members.
    pub(super) fn is_deduced(&self) -> bool {
        !self.atomic
            && !self.whole
            && matches!(self.others, Some(Place::Deduced))
            && self.schema.is_none_or(|schema| schema.properties.is_empty())
    }
}

impl List<'_> {
    pub(super) const fn is_atomic(&self) -> bool {
        matches!(self.identity, Identity::Atomic)
    }

    /// How an item of the list is named in paths, or why it cannot be named.
    pub(super) fn element(&self, item: &Value) -> Result<PathElement, String> {
        match self.identity {
            Identity::Keys(keys) => self.element_by_keys(keys, item),
            Identity::Value | Identity::Atomic => match item {
                Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
                Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                scalar => Ok(PathElement::Value(Literal(scalar.clone()))),
            },
        }
    }

    fn element_by_keys(&self, keys: &[String], item: &Value) -> Result<PathElement, String> {
        let item = match item {
            Value::Object(item) => item,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let mut found: Vec<(String, Literal)> = keys
            .iter()
            .filter_map(|key| {
                let value = item.get(key).or_else(|| self.default_of(key))?;
                Some((key.clone(), Literal(value.clone())))
            })
            .collect();
        if found.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] \
                 (and doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        found.sort();
        Ok(PathElement::Key(found))
    }

    fn default_of(&self, key: &str) -> Option<&Value> {
        match self.items {
            Place::Inside(schema) => schema.properties.get(key)?.default.as_ref(),
            _ => None,
        }
    }
}
