//! How policies spell the arguments that they look at.
//!
//! Some servers do not care about capitals, and take `Hive` for `hive`; Cedar does. So an argument in other capitals
//! would pass every policy about it unseen, and is refused instead.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use cedar_policy::Policy;

use super::{Denied, seen};
use crate::middleware::ambiguity::fold;

/// The arguments that some policies look at, by their names in small letters.
#[derive(Debug, Clone, Default)]
pub(super) struct Spellings(HashMap<String, Spelling>);

/// One argument.
#[derive(Debug, Clone)]
struct Spelling {
    /// Everything that a policy calls it.
    all: BTreeSet<String>,
    /// What every policy calls it that looks at it. One that names several spellings has thought of them.
    common: BTreeSet<String>,
}

impl Spellings {
    pub(super) fn add(&mut self, policy: &Policy) {
        let mut own: HashMap<String, BTreeSet<String>> = HashMap::new();
        for name in seen::arguments(policy) {
            own.entry(fold(&name).into_owned()).or_default().insert(name);
        }
        for (plain, names) in own {
            let spelling =
                self.0.entry(plain).or_insert_with(|| Spelling { all: BTreeSet::new(), common: names.clone() });
            spelling.common.retain(|name| names.contains(name));
            spelling.all.extend(names);
        }
    }

    /// Refuses an argument that a policy would overlook although it looks at one of that name.
    pub(super) fn check(&self, arguments: &[(Cow<'_, str>, &str)]) -> Result<(), Denied> {
        if self.0.is_empty() {
            return Ok(());
        }
        for (name, _) in arguments {
            let Some(spelling) = self.0.get(&*fold(name)) else { continue };
            if !spelling.common.contains(&**name) {
                let known = spelling.all.iter().find(|known| *known != name).cloned().unwrap_or_default();
                return Err(Denied::Capitals { given: name.to_string(), known });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spellings(conditions: &[&str]) -> Spellings {
        let mut spellings = Spellings::default();
        for condition in conditions {
            let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
            spellings.add(&Policy::parse(None, text).unwrap_or_else(|error| panic!("{condition}: {error}")));
        }
        spellings
    }

    /// What the argument is taken for that the policies would overlook.
    fn overlooked(spellings: &Spellings, name: &str) -> Option<String> {
        match spellings.check(&[("a".into(), "1"), (name.into(), "1")]) {
            Ok(()) => None,
            Err(Denied::Capitals { given, known }) => {
                assert_eq!(given, name);
                Some(known)
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn an_argument_in_other_capitals_than_those_of_a_policy_is_refused() {
        let one = spellings(&["context has arg_task && context.arg_task != 1", "resource has arg_list_present"]);
        for (name, expected) in [
            ("task", None),
            ("tasks", None),
            ("Task", Some("task")),
            ("TASK", Some("task")),
            ("ta\u{17f}\u{212a}", Some("task")),
            ("list", None),
            ("List", Some("list")),
            ("list_Present", Some("list_present")),
        ] {
            assert_eq!(overlooked(&one, name).as_deref(), expected, "{name}");
        }
        let capital = spellings(&["context has arg_Path"]);
        assert_eq!(overlooked(&capital, "path").as_deref(), Some("Path"));
        assert_eq!(overlooked(&capital, "Path"), None);
        assert_eq!(overlooked(&Spellings::default(), "Path"), None);
    }

    #[test]
    fn a_policy_that_names_both_spellings_has_thought_of_both_and_two_policies_have_not() {
        let both = spellings(&["context has arg_path || context has arg_Path"]);
        assert_eq!(["path", "Path"].map(|name| overlooked(&both, name)), [None, None]);
        assert_eq!(overlooked(&both, "PATH").as_deref(), Some("Path"));
        let apart = spellings(&["context has arg_path", "context has arg_Path"]);
        assert_eq!(overlooked(&apart, "path").as_deref(), Some("Path"));
        assert_eq!(overlooked(&apart, "Path").as_deref(), Some("path"));
    }

    #[test]
    fn a_policy_that_takes_the_context_as_a_whole_names_arguments_all_the_same() {
        let whole = spellings(&["context != {} && context has arg_path"]);
        assert_eq!(overlooked(&whole, "Path").as_deref(), Some("path"));
    }
}
