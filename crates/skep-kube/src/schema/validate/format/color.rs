//! Colours.

/// Three or six hexadecimal digits, with or without a `#`.
pub(super) fn is_hexadecimal(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && super::is_hexadecimal(digits)
}

/// `rgb(1, 2, 3)`.
pub(super) fn is_rgb(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let parts: Vec<&str> = inside.split(',').map(|part| part.trim_matches([' ', '\t', '\n', '\r', '\u{c}'])).collect();
    parts.len() == 3 && parts.into_iter().all(is_share)
}

/// A number up to 255 without leading zeros.
fn is_share(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
        && text.parse::<u8>().is_ok()
}
