//! Changes single members of a document. All other bytes stay as they are.

use std::borrow::Cow;

use super::scan::{JsonError, Names, Scanner, Span};
use super::text::{decode, quote};

/// Why a member cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The document cannot be read.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// On the way to the member there is something else than an object.
    #[error("{0} is no object")]
    NoObject(String),
}

/// Where a path ends.
enum Place {
    Member(Member),
    /// The objects of the path are there up to this one, which has no such member.
    Missing {
        object: Span,
        /// Where its last value ends, unless it is empty.
        last: Option<usize>,
        depth: usize,
    },
}

/// A member and what is around it.
struct Member {
    name: Span,
    value: Span,
    /// Where the value before it ends, if it is not the first.
    before: Option<usize>,
    is_last: bool,
}

/// The value at a path of names, if it is there.
pub fn find(text: &str, path: &[&str]) -> Result<Option<Span>, EditError> {
    Ok(match locate(text, path)? {
        Place::Member(member) => Some(member.value),
        Place::Missing { .. } => None,
    })
}

/// The document with this value at a path. Objects that are missing on the way are added. `value` has to be JSON.
pub fn set(text: &str, path: &[&str], value: &str) -> Result<String, EditError> {
    Ok(match locate(text, path)? {
        Place::Member(member) => replaced(text, member.value, value),
        Place::Missing { object, last, depth } => {
            let missing = path.get(depth..).unwrap_or_default();
            let mut added = String::from(if last.is_none() { "" } else { "," });
            for (index, name) in missing.iter().enumerate() {
                added.push_str(if index == 0 { "" } else { "{" });
                added.push_str(&quote(name));
                added.push(':');
            }
            added.push_str(value);
            added.push_str(&"}".repeat(missing.len().saturating_sub(1)));
            // Directly behind its neighbour, so that removing it gives back the spaces that were there.
            let end = last.unwrap_or(object.end - 1);
            replaced(text, Span { start: end, end }, &added)
        }
    })
}

/// The document without the member at a path; nothing when it is not there.
pub fn remove(text: &str, path: &[&str]) -> Result<Option<String>, EditError> {
    let Place::Member(member) = locate(text, path)? else { return Ok(None) };
    let gone = match member.before {
        Some(before) => Span { start: before, end: member.value.end },
        None if member.is_last => Span { start: member.name.start, end: member.value.end },
        // Its comma goes with it.
        None => Span { start: member.name.start, end: comma_after(text, member.value.end) },
    };
    Ok(Some(replaced(text, gone, "")))
}

/// The values of an array, as JSON.
pub fn items(array: &str) -> Result<Vec<&str>, EditError> {
    let mut items = Vec::new();
    let mut scanner = Scanner::new(array);
    scanner.array(|scanner| {
        items.push(scanner.value()?.of(array));
        Ok(())
    })?;
    scanner.end()?;
    Ok(items)
}

/// The members of an object: what each name means, and each value as JSON.
pub fn members(object: &str) -> Result<Vec<(Cow<'_, str>, &str)>, EditError> {
    let mut members = Vec::new();
    let mut names = Names::default();
    let mut scanner = Scanner::new(object);
    scanner.object(|scanner, name| {
        members.push((names.add(scanner, name)?, scanner.value()?.of(object)));
        Ok(())
    })?;
    scanner.end()?;
    Ok(members)
}

/// The text with each span replaced. The spans have to be in order and apart.
pub fn splice<'a>(text: &[u8], changes: impl IntoIterator<Item = (Span, &'a [u8])>) -> Vec<u8> {
    let mut spliced = Vec::with_capacity(text.len() + 32);
    let mut at = 0;
    for (span, value) in changes {
        spliced.extend_from_slice(text.get(at..span.start).unwrap_or_default());
        spliced.extend_from_slice(value);
        at = span.end;
    }
    spliced.extend_from_slice(text.get(at..).unwrap_or_default());
    spliced
}

fn replaced(text: &str, span: Span, value: &str) -> String {
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    [before.unwrap_or_default(), value, after.unwrap_or_default()].concat()
}

fn comma_after(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.find(',')).map_or(at, |comma| at + comma + 1)
}

fn locate(text: &str, path: &[&str]) -> Result<Place, EditError> {
    let mut scanner = Scanner::new(text);
    let mut object = scanner.value()?;
    scanner.end()?;
    for (depth, name) in path.iter().enumerate() {
        if text.as_bytes().get(object.start) != Some(&b'{') {
            return Err(EditError::NoObject(path[..depth].join(".")));
        }
        let (found, last) = member(text, object, name)?;
        match found {
            None => return Ok(Place::Missing { object, last, depth }),
            Some(member) if depth + 1 == path.len() => return Ok(Place::Member(member)),
            Some(member) => object = member.value,
        }
    }
    Err(EditError::NoObject("an empty path".to_owned()))
}

/// A member of an object, and where the last value of the object ends.
fn member(text: &str, object: Span, wanted: &str) -> Result<(Option<Member>, Option<usize>), JsonError> {
    let mut found: Option<Member> = None;
    let mut before = None;
    Scanner::from(text, object.start).object(|scanner, name| {
        let value = scanner.value()?;
        let is_wanted = decode(name.of(text)).as_deref() == Some(wanted);
        match &mut found {
            // Whoever reads the document next may take the other one.
            Some(_) if is_wanted => return Err(JsonError::Duplicate { at: name.start }),
            Some(found) => found.is_last = false,
            None if is_wanted => found = Some(Member { name, value, before, is_last: true }),
            None => {}
        }
        before = Some(value.end);
        Ok(())
    })?;
    Ok((found, before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_replaced_and_the_rest_stays() {
        let text = " { \"a\" : 1 , \"b\":{\"c\": [1, 2] } }\n";
        assert_eq!(set(text, &["b", "c"], "true").unwrap(), " { \"a\" : 1 , \"b\":{\"c\": true } }\n");
        assert_eq!(find(text, &["b", "c"]).unwrap().unwrap().of(text), "[1, 2]");
        assert_eq!(find(text, &["b", "d"]).unwrap(), None);
    }

    #[test]
    fn what_is_missing_is_added_with_the_objects_around_it() {
        assert_eq!(set("{}", &["a"], "1").unwrap(), r#"{"a":1}"#);
        assert_eq!(set(r#"{"a":1}"#, &["b", "c d", "e"], "[]").unwrap(), r#"{"a":1,"b":{"c d":{"e":[]}}}"#);
        assert_eq!(set(r#"{"a":{ }}"#, &["a", "b"], "0").unwrap(), r#"{"a":{ "b":0}}"#);
        assert_eq!(set(r#"{"a":1 }"#, &["b"], "0").unwrap(), r#"{"a":1,"b":0 }"#);
        assert_eq!(set(r#"{"a":1}"#, &["a", "b"], "0"), Err(EditError::NoObject("a".to_owned())));
        assert!(set("[]", &["a"], "0").is_err() && set("{} x", &["a"], "0").is_err());
        assert!(set(r#"{"a":1,"\u0061":2}"#, &["a"], "0").is_err());
    }

    #[test]
    fn a_member_goes_with_its_comma() {
        for (text, name, rest) in [
            (r#"{"a":1}"#, "a", "{}"),
            (r#"{"a" : 1 , "b":2}"#, "a", r#"{ "b":2}"#),
            (r#"{"a":1, "b":2}"#, "b", r#"{"a":1}"#),
            (r#"{"a":1,"b":2 ,"c":3}"#, "b", r#"{"a":1 ,"c":3}"#),
        ] {
            assert_eq!(remove(text, &[name]).unwrap().as_deref(), Some(rest), "{text}");
        }
        assert_eq!(remove("{}", &["a"]).unwrap(), None);
    }

    #[test]
    fn containers_are_taken_apart() {
        assert_eq!(items(r#" [1.0, {"a":[2]} ]"#).unwrap(), ["1.0", r#"{"a":[2]}"#]);
        assert_eq!(members(r#"{"a" : 1,"\u0062":[ ]}"#).unwrap(), [("a".into(), "1"), ("b".into(), "[ ]")]);
        assert!(items("{}").is_err() && members("[]").is_err() && members(r#"{"a":1,"a":2}"#).is_err());
    }

    #[test]
    fn names_are_compared_by_what_they_mean() {
        assert_eq!(set(r#"{"\u0061":1}"#, &["a"], "2").unwrap(), r#"{"\u0061":2}"#);
    }

    #[test]
    fn several_places_are_spliced_at_once() {
        let changes = [(Span { start: 0, end: 1 }, &b"xx"[..]), (Span { start: 3, end: 3 }, &b"-"[..])];
        assert_eq!(splice(b"abcd", changes), b"xxbc-d");
    }
}
