//! Members that are there twice: whoever reads the document next may take the other one.

use std::borrow::Cow;

use super::edit::{EditError, items, members};
use super::scan::{JsonError, Scanner};
use super::text::decode;

/// Where the first member is that its object has twice, however deep that is, such as `a.b[1].c`.
pub fn twice(text: &str) -> Result<Option<String>, EditError> {
    let mut scanner = Scanner::new(text);
    // That looks how deep it goes.
    let value = scanner.value()?;
    scanner.end()?;
    within(value.of(text))
}

fn within(value: &str) -> Result<Option<String>, EditError> {
    match value.as_bytes().first() {
        Some(b'{') => {
            let members = match members(value) {
                Err(EditError::Json(JsonError::Duplicate { at })) => return Ok(Some(name_at(value, at)?)),
                members => members?,
            };
            below(members.into_iter())
        }
        Some(b'[') => {
            let items = items(value)?.into_iter().enumerate();
            below(items.map(|(index, item)| (format!("[{index}]").into(), item)))
        }
        _ => Ok(None),
    }
}

fn below<'a>(mut parts: impl Iterator<Item = (Cow<'a, str>, &'a str)>) -> Result<Option<String>, EditError> {
    let found = parts.find_map(|(name, part)| match within(part) {
        Ok(None) => None,
        Ok(Some(path)) if path.starts_with('[') => Some(Ok(format!("{name}{path}"))),
        Ok(Some(path)) => Some(Ok(format!("{name}.{path}"))),
        Err(error) => Some(Err(error)),
    });
    found.transpose()
}

fn name_at(object: &str, at: usize) -> Result<String, EditError> {
    let name = Scanner::from(object, at).value()?.of(object);
    Ok(decode(name).map_or_else(|| name.to_owned(), std::borrow::Cow::into_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_there_twice_is_found_wherever_it_is() {
        for (text, expected) in [
            (r#" {"a": {"b": [1, {"c": 1}]}, "c": 1} "#, None),
            (r#"{"a": 1, "\u0061": 2}"#, Some("a")),
            (r#"{"x": {"a": 1, "b": 2, "a": 3}}"#, Some("x.a")),
            (r#"{"x": [[0], [{"y": {}}, {"a b": 1, "a b": 1}]]}"#, Some("x[1][1].a b")),
            ("7", None),
        ] {
            assert_eq!(twice(text), Ok(expected.map(str::to_owned)), "{text}");
        }
        assert!(twice("{").is_err());
        assert!(twice(&"[".repeat(1 << 20)).is_err());
    }
}
