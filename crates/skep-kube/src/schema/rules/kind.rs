//! The types of expressions.

use std::sync::Arc;

use super::super::{self as schemas, Schema};

/// The type of an expression.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Not known before there is a value.
    Dynamic,
    /// One of the types with a name and no parts.
    Named(&'static str),
    Null,
    List(Box<Kind>),
    /// With the types of its keys and of its values.
    Map(Box<Kind>, Box<Kind>),
    Optional(Box<Kind>),
    /// A type of values, which is a value itself.
    Type(Box<Kind>),
    /// An object with the members of a schema. The flag says that it is a whole one, with a version, kind and name.
    Object(Arc<Schema>, bool),
    /// The `metadata` of a whole object.
    Metadata,
    /// In the declaration of a function: any type, the same wherever the letter stands.
    Parameter(char),
}

use Kind::{Dynamic, List, Map, Metadata, Named, Null, Object, Optional, Parameter};

pub(super) const BOOL: Kind = Named("bool");
pub(super) const INT: Kind = Named("int");
pub(super) const STRING: Kind = Named("string");
pub(super) const DURATION: &str = "duration";
pub(super) const TIMESTAMP: &str = "timestamp";

impl Kind {
    pub(super) fn list(items: Self) -> Self {
        List(Box::new(items))
    }

    pub(super) fn map(keys: Self, values: Self) -> Self {
        Map(Box::new(keys), Box::new(values))
    }

    pub(super) fn optional(inner: Self) -> Self {
        Optional(Box::new(inner))
    }

    /// The type of the values of a schema. Nothing when rules cannot see them.
    pub(super) fn of(schema: &Arc<Schema>, whole: bool) -> Option<Self> {
        if schema.int_or_string {
            return Some(Dynamic);
        }
        Some(match schema.type_? {
            schemas::Type::Boolean => BOOL,
            schemas::Type::Integer => INT,
            schemas::Type::Number => Named("double"),
            schemas::Type::String => match schema.format.as_deref() {
                Some("byte") => Named("bytes"),
                Some("duration") => Named(DURATION),
                Some("date" | "date-time" | "datetime") => Named(TIMESTAMP),
                _ => STRING,
            },
            schemas::Type::Array => Self::list(Self::of(schema.items.as_ref()?, false)?),
            schemas::Type::Object => match &schema.additional_properties {
                Some(entries) => Self::map(STRING, Self::of(entries, false)?),
                None => Object(schema.clone(), whole || schema.embedded_resource),
            },
        })
    }

    pub(super) fn name(&self) -> String {
        match self {
            Dynamic => "dyn".to_owned(),
            Named(name) => (*name).to_owned(),
            Null => "null".to_owned(),
            List(items) => format!("list({})", items.name()),
            Map(keys, values) => format!("map({}, {})", keys.name(), values.name()),
            Optional(inner) => format!("optional_type({})", inner.name()),
            Self::Type(inner) => format!("type({})", inner.name()),
            Object(..) | Metadata => "object".to_owned(),
            Parameter(letter) => letter.to_string(),
        }
    }

    /// Whether a value of this type may be of the named one.
    pub(super) fn may_be(&self, name: &str) -> bool {
        matches!(self, Dynamic) || matches!(self, Named(own) if *own == name)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Dynamic | Named("int" | "uint" | "double"))
    }

    /// Whether values have an order.
    pub(super) fn is_ordered(&self) -> bool {
        let ordered = ["bool", "bytes", "double", "int", "string", "uint", DURATION, TIMESTAMP];
        matches!(self, Dynamic) || matches!(self, Named(name) if ordered.contains(name))
    }

    /// Whether values can be added up.
    pub(super) fn is_summable(&self) -> bool {
        self.is_number() || self.may_be(DURATION)
    }

    /// Whether values of two types can be equal at all.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Dynamic, _)
            | (_, Dynamic)
            | (Null, Null | Object(..) | Metadata | Optional(_))
            | (Object(..) | Metadata | Optional(_), Null)
            | (Metadata, Metadata)
            | (Self::Type(_), Self::Type(_)) => true,
            (Named(one), Named(other)) => one == other,
            (Null, Named(name)) | (Named(name), Null) => matches!(*name, DURATION | TIMESTAMP) || name.contains('.'),
            (List(one), List(other)) | (Optional(one), Optional(other)) => one.goes_with(other),
            (Map(one_keys, one), Map(other_keys, other)) => one_keys.goes_with(other_keys) && one.goes_with(other),
            (Object(one, _), Object(other, _)) => Arc::ptr_eq(one, other) || one == other,
            (Parameter(one), Parameter(other)) => one == other,
            _ => false,
        }
    }
}
