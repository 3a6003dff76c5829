//! Tools that are hidden, or shown in another way.
//!
//! What is shown is decided twice, by the same rules: where tools are listed and where one is called.

mod annotations;
mod calls;
mod lists;
#[cfg(test)]
mod property;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

pub use self::annotations::Annotations;
pub(super) use self::calls::ToolCalls;
pub(super) use self::lists::ToolLists;

/// How one tool is shown. What is empty stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    pub name: String,
    pub description: String,
    pub annotations: Annotations,
}

/// Why there are no such rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolRulesError {
    /// Nothing would be hidden or renamed.
    #[error("there is neither a tool to show nor one to show in another way")]
    Nothing,
    /// A name is empty.
    #[error("the name of a tool is empty")]
    NoName,
    /// A tool is to be shown in another way, and in none.
    #[error("tool {0:?} has neither another name nor another description, nor other annotations")]
    Unchanged(String),
    /// Two tools would have one name.
    #[error("two tools are to be shown as {0:?}")]
    Twice(String),
}

/// What clients see of the tools of a server.
#[derive(Debug, Clone)]
pub struct ToolRules(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    /// The names that clients may see; all of them when there are none.
    shown: HashSet<String>,
    /// How tools are shown, by the names that the server knows them by.
    overrides: BTreeMap<String, Shown>,
    /// The names that the server knows tools by, by those that clients do.
    originals: HashMap<String, String>,
}

impl ToolRules {
    /// Shows the tools of these names, and some of them in another way.
    pub fn new(shown: Vec<String>, overrides: BTreeMap<String, Shown>) -> Result<Self, ToolRulesError> {
        if shown.is_empty() && overrides.is_empty() {
            return Err(ToolRulesError::Nothing);
        }
        if shown.iter().chain(overrides.keys()).any(String::is_empty) {
            return Err(ToolRulesError::NoName);
        }
        let mut originals = HashMap::new();
        for (original, shown) in &overrides {
            if shown == &Shown::default() {
                return Err(ToolRulesError::Unchanged(original.clone()));
            }
            if !shown.name.is_empty() && originals.insert(shown.name.clone(), original.clone()).is_some() {
                return Err(ToolRulesError::Twice(shown.name.clone()));
            }
        }
        Ok(Self(Arc::new(Rules { shown: shown.into_iter().collect(), overrides, originals })))
    }

    /// Whether clients see a tool of that name.
    fn is_shown(&self, name: &str) -> bool {
        self.0.shown.is_empty() || self.0.shown.contains(name)
    }

    /// Whether clients can call a tool that the server knows by this name, under whatever name they know it by.
    pub(super) fn is_callable(&self, original: &str) -> bool {
        let visible = self.shown(original).map(|shown| shown.name.as_str()).filter(|name| !name.is_empty());
        self.is_shown(original) || visible.is_some_and(|visible| self.is_shown(visible))
    }

    /// What the server knows a tool by that clients know by this name.
    fn original<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.originals.get(name).map_or(name, String::as_str)
    }

    /// How a tool is shown that the server knows by this name, if in another way.
    fn shown(&self, original: &str) -> Option<&Shown> {
        self.0.overrides.get(original)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(shown: &[&str], overrides: &[(&str, &str, &str)]) -> Result<ToolRules, ToolRulesError> {
        let shown = shown.iter().map(|name| (*name).to_owned()).collect();
        let overrides = overrides.iter().map(|(original, name, description)| {
            (
                (*original).to_owned(),
                Shown { name: (*name).to_owned(), description: (*description).to_owned(), ..Shown::default() },
            )
        });
        ToolRules::new(shown, overrides.collect())
    }

    #[test]
    fn rules_that_say_nothing_are_refused() {
        for (made, error) in [
            (rules(&[], &[]), ToolRulesError::Nothing),
            (rules(&["a", ""], &[]), ToolRulesError::NoName),
            (rules(&[], &[("", "a", "")]), ToolRulesError::NoName),
            (rules(&[], &[("a", "", "")]), ToolRulesError::Unchanged("a".to_owned())),
            (rules(&[], &[("a", "c", ""), ("b", "c", "")]), ToolRulesError::Twice("c".to_owned())),
        ] {
            assert_eq!(made.unwrap_err(), error);
        }
        let annotations = Annotations { title: Some(String::new()), ..Annotations::default() };
        let shown = Shown { annotations, ..Shown::default() };
        assert!(ToolRules::new(Vec::new(), [("a".to_owned(), shown)].into()).is_ok());
    }

    #[test]
    fn the_list_has_the_names_that_clients_know() {
        let rules = rules(&["weigh"], &[("weigh_hive", "weigh", ""), ("feed", "", "Feeds.")]).unwrap();
        assert!(rules.is_shown("weigh") && !rules.is_shown("weigh_hive") && !rules.is_shown("feed"));
        assert!(rules.is_callable("weigh_hive") && !rules.is_callable("feed"));
        assert_eq!((rules.original("weigh"), rules.original("feed")), ("weigh_hive", "feed"));
    }
}
