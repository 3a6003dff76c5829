//! Walking an object while remembering where one is, for errors that name the field.

use serde_json::Value;

use crate::names::{PORT_RANGE, is_port_number, port_name, validate_labels};
use crate::selector::validate_label_selector;
use crate::status::{FieldError, Problem};

/// A place in an object. Members that are absent are places too, with a null value.
#[derive(Debug, Clone)]
pub(super) struct At<'a> {
    pub(super) path: String,
    pub(super) value: &'a Value,
}

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    pub(super) fn member(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { path, value: &self.value[name] }
    }

    /// A member several levels down, its names separated by dots.
    pub(super) fn deep(&self, names: &str) -> Self {
        names.split('.').fold(self.clone(), |place, name| place.member(name))
    }

    /// The path of a map's member.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}[{name}]", self.path)
    }

    pub(super) fn index(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), value: &self.value[index] }
    }

    /// The items of a list member.
    pub(super) fn items(&self, name: &str) -> Vec<Self> {
        let list = self.member(name);
        (0..list.value.as_array().map_or(0, Vec::len)).map(|index| list.index(index)).collect()
    }

    /// The members of a map member.
    pub(super) fn entries(&self, name: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.value[name].as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    /// A text member; absent ones are empty.
    pub(super) fn text(&self, name: &str) -> &'a str {
        self.value[name].as_str().unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.value[name].as_i64()
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.value[name].as_bool().unwrap_or_default()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        !self.value[name].is_null()
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(super) fn own_text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn required(&self, detail: &str) -> FieldError {
        FieldError::required(self.path.as_str(), detail)
    }

    pub(super) fn forbidden(&self, detail: &str) -> FieldError {
        FieldError::forbidden(self.path.as_str(), detail)
    }

    /// The value is wrong. An absent text counts as an empty one.
    pub(super) fn invalid(&self, detail: &str) -> FieldError {
        FieldError::invalid(self.path.as_str(), self.value.clone(), detail)
    }

    pub(super) fn invalid_as(&self, value: impl Into<Value>, detail: &str) -> FieldError {
        FieldError::invalid(self.path.as_str(), value, detail)
    }

    pub(super) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path.as_str(), self.value.clone())
    }

    /// None of the supported values, which are listed in the given order.
    pub(super) fn unsupported(&self, supported: &[&str]) -> FieldError {
        let listed: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let value = if self.value.is_null() { Value::from("") } else { self.value.clone() };
        let detail = format!("supported values: {}", listed.join(", "));
        FieldError::new(self.path.as_str(), Problem::NotSupported(value), detail)
    }

    /// What is wrong with labels that stand here.
    pub(super) fn labels(&self) -> Vec<FieldError> {
        self.value.as_object().map(|labels| validate_labels(labels, &self.path)).unwrap_or_default()
    }

    /// What is wrong with a label selector that stands here.
    pub(super) fn selector(&self) -> Vec<FieldError> {
        validate_label_selector(self.value, &self.path)
    }

    /// One error per message.
    pub(super) fn each(&self, messages: Vec<String>) -> Vec<FieldError> {
        let value = if self.value.is_null() { Value::from("") } else { self.value.clone() };
        messages.into_iter().map(|message| self.invalid_as(value.clone(), &message)).collect()
    }
}

pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Refuses a negative number.
pub(super) fn not_negative(place: &At<'_>) -> Option<FieldError> {
    (place.value.as_i64()? < 0).then(|| place.invalid(NOT_NEGATIVE))
}

/// Refuses what is neither absent nor one of the supported values.
pub(super) fn one_of(place: &At<'_>, supported: &[&str]) -> Option<FieldError> {
    (place.is_set() && !supported.contains(&place.own_text())).then(|| place.unsupported(supported))
}

/// A port number, or the name of a port.
pub(super) fn port_or_name(place: &At<'_>) -> Vec<FieldError> {
    match place.value.as_i64() {
        Some(number) => (!is_port_number(number)).then(|| place.invalid(PORT_RANGE)).into_iter().collect(),
        None if place.value.is_string() => place.each(port_name(place.own_text())),
        None => vec![place.invalid_as(0, PORT_RANGE)],
    }
}

/// A struct as the real server writes it in messages: members in the order of its types.
pub(super) fn struct_text(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, text)| format!("{name:?}:{text}")).collect();
    format!("{{{}}}", members.join(","))
}

/// The members of an object in the given order, leaving out those that are absent.
pub(super) fn ordered_text(value: &Value, names: &[&str]) -> String {
    let present: Vec<(&str, String)> =
        names.iter().filter(|name| !value[**name].is_null()).map(|name| (*name, value[*name].to_string())).collect();
    struct_text(&present)
}
