//! `${name}` in requests and expectations.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Why a text could not be filled in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("nothing was saved under the name {0:?}")]
    Unknown(String),
    #[error("`${{` without an end")]
    Open,
}

/// The values that names stand for.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(BTreeMap<String, Value>);

impl Values {
    pub(super) fn save(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Fills in a text.
    pub(super) fn text(&self, template: &str) -> Result<String, TemplateError> {
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) = after.split_once('}').ok_or(TemplateError::Open)?;
            filled.push_str(before);
            match self.lookup(name)? {
                Value::String(text) => filled.push_str(&text),
                other => filled.push_str(&other.to_string()),
            }
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Fills in every text and key of a value. A text that is one name becomes its value, whatever the type.
    pub(super) fn value(&self, template: &Value) -> Result<Value, TemplateError> {
        Ok(match template {
            Value::String(text) => match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
                Some(name) if !name.contains('}') => self.lookup(name)?,
                _ => Value::String(self.text(text)?),
            },
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?),
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, member)| Ok((self.text(key)?, self.value(member)?)))
                    .collect::<Result<Map<_, _>, TemplateError>>()?,
            ),
            other => other.clone(),
        })
    }

    /// `fill:N` is a text of N characters; `nest:N` is an object in an object in an object, N times; `operations:N` are
    /// N operations of a JSON patch.
    fn lookup(&self, name: &str) -> Result<Value, TemplateError> {
        let unknown = || TemplateError::Unknown(name.to_owned());
        match name.split_once(':') {
            Some((function, count)) => {
                let count: usize = count.parse().map_err(|_| unknown())?;
                match function {
                    "fill" => Ok(Value::String("x".repeat(count))),
                    "nest" => Ok(Value::String(format!("{}{{}}{}", "{\"a\":".repeat(count), "}".repeat(count)))),
                    "operations" => {
                        Ok(Value::String(vec![r#"{"op":"test","path":"/kind","value":""}"#; count].join(",")))
                    }
                    _ => Err(unknown()),
                }
            }
            None => self.0.get(name).cloned().ok_or_else(unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_filled_in_with_their_types() {
        let mut values = Values::default();
        values.save("name", json!("bee"));
        values.save("count", json!(3));
        let filled = values.value(&json!({ "a-${name}": ["${count}", "${count} of ${name}", "${fill:2}"] }));
        assert_eq!(filled, Ok(json!({ "a-bee": [3, "3 of bee", "xx"] })));
        assert_eq!(values.text("${nest:2}"), Ok("{\"a\":{\"a\":{}}}".to_owned()));
    }

    #[test]
    fn unknown_names_are_errors() {
        assert_eq!(Values::default().text("${who}"), Err(TemplateError::Unknown("who".into())));
        assert_eq!(Values::default().text("${who"), Err(TemplateError::Open));
    }
}
