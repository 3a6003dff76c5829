//! Texts that must not be seen in logs.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// A secret text, or one that may hold a secret. Documents carry it as it is; `Debug` prints `***`, and there is no
/// `Display`, so that it only comes out by [`Sensitive::expose`].
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sensitive(pub String);

impl Sensitive {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Whether a secret is set at all is worth knowing and gives nothing away.
impl fmt::Debug for Sensitive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_empty() { "\"\"" } else { "***" })
    }
}

/// To a schema it is a text like any other.
impl JsonSchema for Sensitive {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl From<&str> for Sensitive {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Sensitive {
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_from_debug_and_not_from_json() {
        let secret = Sensitive::from("hunter2");
        assert_eq!(format!("{secret:?} {secret:#?}"), "*** ***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"hunter2\"");
        assert_eq!(serde_json::from_str::<Sensitive>("\"hunter2\"").unwrap(), secret);
        assert_eq!(format!("{:?}", Sensitive::default()), "\"\"");
    }
}
