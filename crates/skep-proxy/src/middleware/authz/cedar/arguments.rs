//! The arguments of a call: what is refused whatever policies say, and what policies are told. A call may have very many
//! of them, so that nothing is made of those that no policy looks at.

use std::borrow::Cow;
use std::collections::HashSet;

use super::Denied;
use super::claims::Attributes;
use super::seen::Seen;
use super::values::{self, PRESENT, Sight};

/// So many arguments are told to policies. Where they look at the context as a whole, a call with more is refused.
pub(super) const MOST: usize = 1_000;

/// Refuses what cannot be told to anybody, or would be told in two ways.
pub(super) fn check(arguments: &[(Cow<'_, str>, &str)]) -> Result<(), Denied> {
    // That something is there is not for another argument to say.
    let mut present = HashSet::new();
    for (name, json) in arguments {
        let untold = || Denied::Argument(name.to_string());
        let said = match values::sight(json).ok_or_else(untold)? {
            Sight::Plain => name.strip_suffix(PRESENT),
            Sight::Present => Some(&**name),
        };
        if said.is_some_and(|said| !present.insert(said)) {
            return Err(untold());
        }
    }
    Ok(())
}

/// Those that policies look at, by their names and as JSON.
pub(super) fn seen(arguments: &[(Cow<'_, str>, &str)], seen: &Seen) -> Result<Vec<(String, String)>, Denied> {
    let mut looked_at = Vec::new();
    for (name, json) in arguments.iter().filter(|(name, _)| seen.has(name)) {
        if looked_at.len() == MOST {
            return Err(Denied::TooMany);
        }
        looked_at.push((name.to_string(), (*json).to_owned()));
    }
    Ok(looked_at)
}

/// Arguments as policies see them.
pub(super) fn told(arguments: &[(String, String)]) -> Result<Attributes, Denied> {
    let told =
        |(name, json): &(String, String)| values::argument(name, json).ok_or_else(|| Denied::Argument(name.clone()));
    arguments.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_something_is_there_is_said_once() {
        let checked = |given: &[(&'static str, &'static str)]| {
            check(&given.iter().map(|(name, json)| ((*name).into(), *json)).collect::<Vec<_>>())
        };
        assert_eq!(checked(&[("x", "[1]"), ("y_present", "true"), ("x_present", "[]")]), Ok(()));
        assert_eq!(checked(&[("x", "1"), ("x_present", "false")]), Ok(()));
        for (first, second) in [("x", "x_present"), ("x_present", "x")] {
            let json = |name| if name == "x" { "1e99" } else { "false" };
            let answer = checked(&[(first, json(first)), (second, json(second))]);
            assert_eq!(answer, Err(Denied::Argument(second.to_owned())));
        }
        assert_eq!(checked(&[("x", r#""\ud800""#)]), Err(Denied::Argument("x".to_owned())));
    }
}
