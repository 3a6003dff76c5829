//! What a server says about its tools, as policies see it. Only the server's own lists are believed.

use std::collections::HashMap;

use parking_lot::RwLock;
use skep_mcp::catalog::Item;
use skep_mcp::json;

/// How many tools are remembered. A server with more of them has tools without hints.
const LARGEST: usize = 64 << 10;
/// A tool with a longer name has no hints either, so that what is remembered has a bound, in bytes.
const LONGEST_NAME: usize = 256;
const NAMES: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// The hints of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Hints([Option<bool>; NAMES.len()]);

impl Hints {
    /// Reads the hints of a listed tool. What is neither true nor false is no hint.
    fn read(tool: &str) -> Self {
        let mut hints = Self::default();
        let annotations = json::find(tool, &["annotations"]).ok().flatten().map(|span| span.of(tool));
        for (name, value) in annotations.and_then(|members| json::members(members).ok()).unwrap_or_default() {
            if let Some(place) = NAMES.iter().position(|known| *known == name) {
                hints.0[place] = value.parse().ok();
            }
        }
        hints
    }

    /// Those that were given.
    pub(super) fn given(self) -> impl Iterator<Item = (&'static str, bool)> {
        NAMES.into_iter().zip(self.0).filter_map(|(name, hint)| hint.map(|hint| (name, hint)))
    }
}

/// The hints of all tools that were listed so far.
#[derive(Debug, Default)]
pub(super) struct Known(RwLock<HashMap<Box<str>, Hints>>);

impl Known {
    /// Remembers one page of tools. What other pages said stays.
    pub(super) fn learn<'a>(&self, tools: impl IntoIterator<Item = &'a Item<'a>>) {
        let tools: Vec<(&str, Hints)> = tools.into_iter().map(|tool| (&*tool.key, Hints::read(tool.json))).collect();
        let mut known = self.0.write();
        for (name, hints) in tools {
            if let Some(old) = known.get_mut(name) {
                *old = hints;
            } else if known.len() < LARGEST && name.len() <= LONGEST_NAME {
                known.insert(name.into(), hints);
            }
        }
    }

    pub(super) fn of(&self, tool: &str) -> Hints {
        self.0.read().get(tool).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use skep_mcp::catalog::{Catalog, CatalogKind};

    use super::*;

    #[test]
    fn pages_are_remembered_together_and_the_last_word_counts() {
        let known = Known::default();
        let learn = |page: &str| known.learn(Catalog::read(CatalogKind::Tools, page).unwrap().items());
        learn(r#"{"tools":[{"name":"a","annotations":{"readOnlyHint":true,"title":"x","openWorldHint":"yes"}}]}"#);
        learn(r#"{"tools":[{"name":"b","annotations":{"destructiveHint":false}},{"name":"c"}]}"#);
        let given = |tool| known.of(tool).given().collect::<Vec<_>>();
        assert_eq!(given("a"), [("readOnlyHint", true)]);
        assert_eq!(given("b"), [("destructiveHint", false)]);
        assert_eq!((given("c"), given("never listed")), (vec![], vec![]));
        learn(r#"{"tools":[{"name":"a"}]}"#);
        assert_eq!(given("a"), []);
    }

    #[test]
    fn what_is_remembered_of_names_has_a_bound() {
        let known = Known::default();
        let (long, longer) = ("n".repeat(LONGEST_NAME), "n".repeat(LONGEST_NAME + 1));
        let tool = |name: &str| format!(r#"{{"name":"{name}","annotations":{{"readOnlyHint":true}}}}"#);
        let page = format!(r#"{{"tools":[{},{}]}}"#, tool(&long), tool(&longer));
        known.learn(Catalog::read(CatalogKind::Tools, &page).unwrap().items());
        assert_eq!(known.of(&long).given().count(), 1);
        assert_eq!(known.of(&longer).given().count(), 0);
        assert_eq!(known.0.read().len(), 1);
    }
}
