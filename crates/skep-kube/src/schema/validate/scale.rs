//! The members that a scale subresource reads.

use serde_json::Value;

use crate::status::FieldError;

/// Where a scale subresource finds what it shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scale {
    pub spec_replicas_path: String,
    pub status_replicas_path: String,
    pub label_selector_path: Option<String>,
}

impl Scale {
    /// Reads `subresources.scale` of a version.
    pub fn read(document: &Value) -> Option<Self> {
        let text = |name: &str| document[name].as_str().map(str::to_owned);
        document.is_object().then(|| Self {
            spec_replicas_path: text("specReplicasPath").unwrap_or_default(),
            status_replicas_path: text("statusReplicasPath").unwrap_or_default(),
            label_selector_path: text("labelSelectorPath"),
        })
    }

    pub(super) fn check(&self, object: &Value) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = check_replicas(object, &self.spec_replicas_path).into_iter().collect();
        errors.extend(self.check_status(object));
        errors
    }

    pub(super) fn check_status(&self, object: &Value) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = check_replicas(object, &self.status_replicas_path).into_iter().collect();
        if let Some(path) = &self.label_selector_path {
            let wrong = match find(object, path) {
                Ok(Some(value)) if !value.is_string() => Some(accessor(path, value, "string")),
                Ok(_) => None,
                Err(problem) => Some(problem),
            };
            errors.extend(wrong.map(|problem| FieldError::invalid(path, "", problem)));
        }
        errors
    }
}

fn check_replicas(object: &Value, path: &str) -> Option<FieldError> {
    let value = match find(object, path) {
        Ok(value) => value?,
        Err(problem) => return Some(FieldError::invalid(path, 0, problem)),
    };
    match value.as_i64() {
        None => Some(FieldError::invalid(path, 0, accessor(path, value, "int64"))),
        Some(replicas) if replicas < 0 => Some(FieldError::invalid(path, replicas, "should be a non-negative integer")),
        Some(replicas) if replicas > i64::from(i32::MAX) => {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            Some(FieldError::invalid(path, replicas, detail))
        }
        Some(_) => None,
    }
}

/// The value at a path such as `.spec.replicas`, unless something on the way is no object.
fn find<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let Some(members) = value.as_object() else {
            return Err(accessor(path, value, "map[string]interface{}"));
        };
        match members.get(name) {
            Some(member) => value = member,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn accessor(path: &str, value: &Value, expected: &str) -> String {
    let type_ = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    format!("{path} accessor error: {} is of the type {type_}, expected {expected}", plain(value))
}

/// A value as Go prints it without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, member)| format!("{name}:{}", plain(member))).collect();
            format!("map[{}]", members.join(" "))
        }
        other => other.to_string(),
    }
}
