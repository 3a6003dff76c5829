//! Hints about tools, in the place of those of the server.

use skep_mcp::json::{self, EditError};

const MEMBER: &str = "annotations";

/// Hints about one tool. One that is not set stays as the server has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The one among the annotations, not the one beside the name. An empty one is a title, too.
    pub title: Option<String>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

impl Annotations {
    /// The members that are set, with their values as JSON.
    fn members(&self) -> impl Iterator<Item = (&'static str, String)> {
        let hints = [
            ("readOnlyHint", self.read_only),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent),
            ("openWorldHint", self.open_world),
        ];
        let hints = hints.into_iter().filter_map(|(name, hint)| Some((name, hint?.to_string())));
        self.title.iter().map(|title| ("title", json::quote(title))).chain(hints)
    }

    /// A tool with these hints; nothing when none is set. What else is said about it stays as it is.
    pub(super) fn replaced(&self, tool: &str) -> Result<Option<String>, EditError> {
        let mut members = self.members().peekable();
        if members.peek().is_none() {
            return Ok(None);
        }
        let told = json::find(tool, &[MEMBER])?.map(|span| span.of(tool));
        // Some servers say null where they have none.
        let told = told.filter(|told| told.starts_with('{')).unwrap_or("{}").to_owned();
        let annotations = members.try_fold(told, |told, (name, value)| json::set(&told, &[name], &value))?;
        json::set(tool, &[MEMBER], &annotations).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_replaces_what_the_server_says_and_nothing_else_does() {
        let annotations = Annotations {
            title: Some("A \"scale\"".to_owned()),
            read_only: Some(false),
            open_world: Some(true),
            ..Annotations::default()
        };
        for (tool, expected) in [
            (
                r#"{"name": "a", "annotations": {"x": 1.0, "readOnlyHint": true, "idempotentHint":true}}"#,
                r#"{"name": "a", "annotations": {"x": 1.0, "readOnlyHint": false, "idempotentHint":true,"title":"A \"scale\"","openWorldHint":true}}"#,
            ),
            (
                r#"{"name":"a"}"#,
                r#"{"name":"a","annotations":{"title":"A \"scale\"","readOnlyHint":false,"openWorldHint":true}}"#,
            ),
            (
                r#"{"annotations":null,"name":"a"}"#,
                r#"{"annotations":{"title":"A \"scale\"","readOnlyHint":false,"openWorldHint":true},"name":"a"}"#,
            ),
        ] {
            assert_eq!(annotations.replaced(tool).unwrap().as_deref(), Some(expected));
        }
        assert_eq!(Annotations::default().replaced(r#"{"name":"a"}"#), Ok(None));
        assert!(annotations.replaced(r#"{"annotations":{},"annotations":{}}"#).is_err());
    }
}
