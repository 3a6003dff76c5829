//! What the server can ask a client.

use serde_json::{Value, json};

use super::message::Members;

/// A kind of question, each behind a capability of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Elicitation,
    Sampling,
    Roots,
}

impl Kind {
    pub(crate) fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Whether a client that declared these capabilities can be asked. Elicitation here means forms, which an empty
    /// declaration includes.
    pub(crate) fn is_declared(self, capabilities: &Members) -> bool {
        match (self, capabilities.get(self.capability()).and_then(Value::as_object)) {
            (_, None) => false,
            (Self::Elicitation, Some(modes)) => modes.is_empty() || modes.contains_key("form"),
            (_, Some(_)) => true,
        }
    }
}

/// A question, under the key by which its answer is found again.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    pub(crate) params: Value,
}

impl Question {
    /// A form with these properties, all of them required.
    pub(crate) fn form(key: &'static str, message: &str, properties: &Value) -> Self {
        let required: Vec<&String> = properties.as_object().map(|members| members.keys().collect()).unwrap_or_default();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Self::form_with_schema(key, message, &schema)
    }

    pub(crate) fn form_with_schema(key: &'static str, message: &str, schema: &Value) -> Self {
        Self { key, kind: Kind::Elicitation, params: json!({"message": message, "requestedSchema": schema}) }
    }

    pub(crate) fn sampling(key: &'static str, prompt: &str, max_tokens: u32) -> Self {
        let messages = json!([{"role": "user", "content": {"type": "text", "text": prompt}}]);
        Self { key, kind: Kind::Sampling, params: json!({"messages": messages, "maxTokens": max_tokens}) }
    }

    pub(crate) fn roots(key: &'static str) -> Self {
        Self { key, kind: Kind::Roots, params: json!({}) }
    }

    /// Whether this can be an answer to the question at all.
    pub(crate) fn fits(&self, answer: &Value) -> bool {
        match self.kind {
            Kind::Elicitation => match answer["action"].as_str() {
                Some("accept") => self.is_filled_in(&answer["content"]),
                Some("decline" | "cancel") => true,
                _ => false,
            },
            Kind::Sampling => {
                answer["role"].is_string() && (answer["content"].is_object() || answer["content"].is_array())
            }
            Kind::Roots => answer["roots"].is_array(),
        }
    }

    /// Whether the form has the members that it must have.
    fn is_filled_in(&self, content: &Value) -> bool {
        let required = self.params["requestedSchema"]["required"].as_array();
        content.is_object()
            && required.into_iter().flatten().filter_map(Value::as_str).all(|name| content.get(name).is_some())
    }
}

/// What was filled in, or how the person refused.
pub(crate) fn filled_in(answer: &Value) -> Result<&Value, &str> {
    match answer["action"].as_str() {
        Some("accept") => Ok(&answer["content"]),
        other => Err(other.unwrap_or("cancel")),
    }
}

/// The text of what a model said.
pub(crate) fn said(answer: &Value) -> &str {
    let content = &answer["content"];
    content["text"].as_str().or_else(|| content[0]["text"].as_str()).unwrap_or("(no text)")
}
