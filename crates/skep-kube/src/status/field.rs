//! What is wrong with the fields of an object.

use serde_json::Value;

use super::Cause;
use crate::go_text;

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The path, such as `spec.containers[0].image`.
    pub field: String,
    pub problem: Problem,
    /// Further words, often empty.
    pub detail: String,
}

/// The kinds of problems that Kubernetes tells apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    Required,
    Forbidden,
    TooLong,
    Internal,
    Invalid(Value),
    /// As `Invalid`, for a value that is better not shown.
    InvalidHidden,
    Duplicate(Value),
    /// As `Duplicate`, for a value that is not shown.
    DuplicateHidden,
    NotFound(Value),
    /// A value outside a list of known ones.
    NotSupported(Value),
    TooMany(Value),
    TypeInvalid(Value),
    /// As `Invalid`, for a struct that is already written out: the order of its members is part of the wording.
    InvalidStruct(String),
    /// As `NotSupported`, likewise.
    NotSupportedStruct(String),
    /// As `Duplicate`, likewise.
    DuplicateStruct(String),
}

impl FieldError {
    pub fn new(field: impl Into<String>, problem: Problem, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem, detail: detail.into() }
    }

    /// Errors in one line, each once.
    pub fn list(errors: &[Self]) -> String {
        let mut lines: Vec<String> = Vec::new();
        for error in errors {
            let line = error.to_string();
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if let [only] = lines.as_slice() { only.clone() } else { format!("[{}]", lines.join(", ")) }
    }

    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Required, detail)
    }

    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Forbidden, detail)
    }

    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Invalid(value.into()), detail)
    }

    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(field, Problem::Duplicate(value.into()), "")
    }

    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let mut supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        supported.sort();
        let detail = format!("supported values: {}", supported.join(", "));
        Self::new(field, Problem::NotSupported(value.into()), detail)
    }

    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::new(field, Problem::TooLong, format!("may not be more than {limit} {unit}"))
    }

    pub fn too_many(field: impl Into<String>, found: usize, limit: usize) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {unit}");
        Self::new(field, Problem::TooMany(found.into()), detail)
    }

    /// Everything but the field: `Invalid value: 0: must be greater than zero`.
    pub fn body(&self) -> String {
        let (words, value) = match &self.problem {
            Problem::Required => ("Required value", None),
            Problem::Forbidden => ("Forbidden", None),
            Problem::TooLong => ("Too long", None),
            Problem::Internal => ("Internal error", None),
            Problem::InvalidHidden | Problem::InvalidStruct(_) => ("Invalid value", None),
            Problem::NotSupportedStruct(_) => ("Unsupported value", None),
            Problem::Invalid(value) | Problem::TypeInvalid(value) => ("Invalid value", Some(value)),
            Problem::Duplicate(value) => ("Duplicate value", Some(value)),
            Problem::DuplicateHidden | Problem::DuplicateStruct(_) => ("Duplicate value", None),
            Problem::NotFound(value) => ("Not found", Some(value)),
            Problem::NotSupported(value) => ("Unsupported value", Some(value)),
            Problem::TooMany(value) => ("Too many", Some(value)),
        };
        let mut body = words.to_owned();
        let struct_text = match &self.problem {
            Problem::InvalidStruct(text) | Problem::NotSupportedStruct(text) | Problem::DuplicateStruct(text) => {
                Some(text.clone())
            }
            _ => None,
        };
        if let Some(text) = struct_text.or_else(|| value.map(shown)) {
            body.push_str(": ");
            body.push_str(&text);
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }

    /// The same as one of the causes of a Status.
    pub(super) fn cause(&self) -> Cause {
        let reason = match self.problem {
            Problem::Required => "FieldValueRequired",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::TooLong => "FieldValueTooLong",
            Problem::Internal => "InternalError",
            Problem::Invalid(_) | Problem::InvalidHidden | Problem::InvalidStruct(_) => "FieldValueInvalid",
            Problem::TypeInvalid(_) => "FieldValueTypeInvalid",
            Problem::Duplicate(_) | Problem::DuplicateHidden | Problem::DuplicateStruct(_) => "FieldValueDuplicate",
            Problem::NotFound(_) => "FieldValueNotFound",
            Problem::NotSupported(_) | Problem::NotSupportedStruct(_) => "FieldValueNotSupported",
            Problem::TooMany(_) => "FieldValueTooMany",
        };
        let field = Some(self.field.clone());
        Cause { reason: reason.to_owned(), message: self.body(), field }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.field, self.body())
    }
}

/// Numbers and booleans bare, strings quoted, everything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => go_text::quoted(text),
        Value::Number(number) => go_text::number(number),
        Value::Bool(flag) => flag.to_string(),
        other => go_text::json(other),
    }
}
