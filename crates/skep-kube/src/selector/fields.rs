//! Field selectors: `metadata.name=web,status.phase!=Running`.

use std::fmt;

use serde_json::Value;

use super::supported::FieldSupport;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOperator {
    Equals,
    NotEquals,
}

/// A condition on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    pub field: String,
    pub operator: FieldOperator,
    pub value: String,
}

/// Conditions that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// Why a text is not a field selector, or not one for the resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    #[error("invalid selector: '{selector}'; can't understand '{part}'")]
    NotUnderstood { selector: String, part: String },
    #[error("invalid field selector: invalid escape sequence: {0}")]
    InvalidEscape(String),
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
    #[error("field label not supported: {0}")]
    NotSupported(String),
    #[error("field label {} not supported for {kind}", crate::go_text::quoted(field))]
    NotSupportedFor { field: String, kind: &'static str },
    #[error("{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", crate::go_text::quoted(.0))]
    NotKnown(String),
}

impl FieldSelector {
    /// Reads a selector. Which fields there are depends on the resource: see [`FieldSelector::check`].
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut requirements = Vec::new();
        for part in parts(text).into_iter().filter(|part| !part.is_empty()) {
            let Some((field, operator, value)) = split(part) else {
                return Err(FieldSelectorError::NotUnderstood { selector: text.to_owned(), part: part.to_owned() });
            };
            let (field, value) = (field.to_owned(), unescaped(value)?);
            // Nothing is asked of nothing.
            if !(field.is_empty() && value.is_empty()) {
                requirements.push(FieldRequirement { field, operator, value });
            }
        }
        Ok(Self { requirements })
    }

    /// The selector of the one object with a name.
    pub fn of_name(name: &str) -> Self {
        let field = "metadata.name".to_owned();
        Self { requirements: vec![FieldRequirement { field, operator: FieldOperator::Equals, value: name.to_owned() }] }
    }

    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The name that selected objects must have, if the selector says so: a list of one needs no search.
    pub fn name(&self) -> Option<&str> {
        self.equalities().find(|(field, _)| *field == "metadata.name").map(|(_, value)| value)
    }

    /// The fields that must have a certain value.
    pub fn equalities(&self) -> impl Iterator<Item = (&str, &str)> {
        let equal = self.requirements.iter().filter(|requirement| requirement.operator == FieldOperator::Equals);
        equal.map(|requirement| (requirement.field.as_str(), requirement.value.as_str()))
    }

    /// Whether the resource has all these fields. Old names of fields give way to the new ones.
    pub fn check(mut self, support: &FieldSupport) -> Result<Self, FieldSelectorError> {
        for requirement in &mut self.requirements {
            requirement.field = support.canonical(&requirement.field)?.to_owned();
        }
        Ok(self)
    }

    /// Whether an object is selected.
    pub fn matches(&self, object: &Value, support: &FieldSupport) -> bool {
        self.requirements.iter().all(|requirement| {
            let equal = support.value(object, &requirement.field) == requirement.value;
            equal == (requirement.operator == FieldOperator::Equals)
        })
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, FieldRequirement { field, operator, value }) in self.requirements.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            let sign = if *operator == FieldOperator::Equals { "=" } else { "!=" };
            write!(formatter, "{field}{sign}{}", escaped(value))?;
        }
        Ok(())
    }
}

/// The text between commas that are not escaped.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaping = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaping => escaping = false,
            '\\' => escaping = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Splits at the first operator.
fn split(part: &str) -> Option<(&str, FieldOperator, &str)> {
    let signs = [("!=", FieldOperator::NotEquals), ("==", FieldOperator::Equals), ("=", FieldOperator::Equals)];
    part.char_indices().find_map(|(at, _)| {
        let (field, rest) = part.split_at(at);
        signs.iter().find_map(|(sign, operator)| Some((field, *operator, rest.strip_prefix(sign)?)))
    })
}

fn unescaped(value: &str) -> Result<String, FieldSelectorError> {
    let mut result = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => result.push(escaped),
                Some(other) => return Err(FieldSelectorError::InvalidEscape(format!("\\{other}"))),
                None => return Err(FieldSelectorError::InvalidEscape("\\".to_owned())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(character)),
            other => result.push(other),
        }
    }
    Ok(result)
}

fn escaped(value: &str) -> String {
    let mut result = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '\\' | ',' | '=') {
            result.push('\\');
        }
        result.push(character);
    }
    result
}
