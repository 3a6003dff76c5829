//! Strings between their two forms: as they are meant, and as JSON writes them.

use std::borrow::Cow;

/// What a string means, given with its quotes. Nothing when it names half of a character.
pub fn decode(quoted: &str) -> Option<Cow<'_, str>> {
    let [b'"', inner @ .., b'"'] = quoted.as_bytes() else { return None };
    let is_escaped = memchr::memchr(b'\\', inner).is_some();
    let inner = quoted.get(1..quoted.len() - 1)?;
    if is_escaped { serde_json::from_str(quoted).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// A string as JSON.
pub fn quote(text: &str) -> String {
    // A string is always JSON.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_decoded_again() {
        for text in ["", "plain", "a\"b\\c", "\u{0}\n", "\u{a0}\u{200d}\u{1F600}"] {
            assert_eq!(decode(&quote(text)).as_deref(), Some(text));
        }
        assert_eq!(decode(r#""\u0061\ud83d\ude00""#).as_deref(), Some("a\u{1F600}"));
        assert_eq!(decode(r#""\ud83d""#), None);
    }
}
