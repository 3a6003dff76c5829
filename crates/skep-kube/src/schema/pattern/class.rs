//! Classes of characters, and characters behind a backslash.

use regex::bytes::Regex;

use super::translate::Translation;

/// What stands between `[:` and `:]`.
const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// A character that means nothing but itself, wherever it stands.
pub(super) fn exactly(character: char) -> String {
    format!(r"\x{{{:X}}}", u32::from(character))
}

/// After `[`, up to and with the `]` that closes the class.
pub(super) fn class(of: &mut Translation<'_>, here: &str) -> Result<(), String> {
    of.text.push('[');
    if of.rest.starts_with('^') {
        of.next();
        of.text.push('^');
    }
    let mut first = true;
    while first || !of.rest.starts_with(']') {
        first = false;
        if let Some(name) = named(of)? {
            of.text.push_str(&name);
        } else if let Some(group) = of.rest.starts_with('\\').then(|| escaped_group(of)).transpose()?.flatten() {
            of.text.push_str(&group);
        } else {
            range(of, here)?;
        }
    }
    of.next();
    of.text.push(']');
    Ok(())
}

/// `[:alpha:]`, `[:^alpha:]`.
fn named(of: &mut Translation<'_>) -> Result<Option<String>, String> {
    let Some(end) = of.rest.strip_prefix("[:").and_then(|rest| rest.find(":]")) else { return Ok(None) };
    let (shown, rest) = of.rest.split_at(end + 4);
    let name = &shown[2..end + 2];
    if !NAMED.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(format!("invalid character class range: `{shown}`"));
    }
    of.rest = rest;
    Ok(Some(shown.to_owned()))
}

fn escaped_group(of: &mut Translation<'_>) -> Result<Option<String>, String> {
    let here = of.rest;
    of.next();
    let group = group(of, here)?;
    if group.is_none() {
        of.rest = here;
    }
    Ok(group)
}

/// One character, or all from one to another.
fn range(of: &mut Translation<'_>, class: &str) -> Result<(), String> {
    let here = of.rest;
    let low = character(of, class)?;
    let mut high = low;
    if of.rest.starts_with('-') && of.rest.len() > 1 && !of.rest.starts_with("-]") {
        of.next();
        high = character(of, class)?;
    }
    if high < low {
        return Err(format!("invalid character class range: `{}`", &here[..here.len() - of.rest.len()]));
    }
    of.text.push_str(&exactly(low));
    of.text.push('-');
    of.text.push_str(&exactly(high));
    Ok(())
}

fn character(of: &mut Translation<'_>, class: &str) -> Result<char, String> {
    let here = of.rest;
    match of.next() {
        None => Err(format!("missing closing ]: `{class}`")),
        Some('\\') => escaped(of, here),
        Some(character) => Ok(character),
    }
}

/// After a backslash, what stands for several characters, as it is written inside of a class. Nothing when there is no
/// such.
pub(super) fn group<'a>(of: &mut Translation<'a>, here: &'a str) -> Result<Option<String>, String> {
    let group = match of.rest.chars().next() {
        Some('d') => "0-9",
        Some('w') => "0-9A-Za-z_",
        Some('s') => r"\t\n\f\r ",
        Some('D') => "[^0-9]",
        Some('W') => "[^0-9A-Za-z_]",
        Some('S') => r"[^\t\n\f\r ]",
        Some('p' | 'P') => return property(of, here).map(Some),
        _ => return Ok(None),
    };
    of.next();
    Ok(Some(group.to_owned()))
}

/// `\pL`, `\p{Greek}`, `\P{^Lu}`: scripts and categories, but not the other properties that the crate knows.
fn property<'a>(of: &mut Translation<'a>, here: &'a str) -> Result<String, String> {
    let mut length = 2 + here[2..].chars().next().map_or(0, char::len_utf8);
    let mut is_closed = true;
    if here[2..].starts_with('{') {
        is_closed = here.contains('}');
        length = here.find('}').map_or(here.len(), |end| end + 1);
    }
    let shown = &here[..length];
    let name = shown[2..].trim_start_matches('{').trim_end_matches('}');
    let (negated, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
    let plain = !name.is_empty()
        && name.chars().all(|character| character.is_ascii_alphanumeric() || " _-".contains(character));
    let is_one = |key: &str| Regex::new(&format!(r"\p{{{key}={name}}}")).is_ok();
    let known = is_closed && plain && (is_one("Script") || is_one("General_Category"));
    if !known {
        return Err(format!("invalid character class range: `{shown}`"));
    }
    of.rest = &here[length..];
    let sign = if shown.starts_with(r"\P") == negated { 'p' } else { 'P' };
    Ok(format!(r"\{sign}{{{name}}}"))
}

/// After a backslash, what stands for one character.
pub(super) fn escaped(of: &mut Translation<'_>, here: &str) -> Result<char, String> {
    let Some(character) = of.next() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let refuse = |length: usize| Err(format!("invalid escape sequence: `{}`", &here[..length]));
    Ok(match character {
        'a' => '\u{7}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        'x' => match hexadecimal(of) {
            Some(character) => character,
            None => return refuse(here.len() - of.rest.len()),
        },
        // One digit that is not nought would be a reference to a group, and there are none.
        '1'..='7' if !of.rest.starts_with(|next: char| ('0'..='7').contains(&next)) => return refuse(2),
        '0'..='7' => octal(of, character),
        sign if sign.is_ascii_punctuation() => sign,
        other => return refuse(1 + other.len_utf8()),
    })
}

/// `41` or `{41}`. When it is none, what is read is what was looked at.
fn hexadecimal(of: &mut Translation<'_>) -> Option<char> {
    let first = of.next()?;
    if first != '{' {
        let second = of.next()?;
        return char::from_u32(first.to_digit(16)? * 16 + second.to_digit(16)?);
    }
    let mut code: Option<u32> = None;
    loop {
        match of.next()? {
            '}' => return code.and_then(char::from_u32),
            digit => {
                let sum = code.unwrap_or_default() * 16 + digit.to_digit(16)?;
                code = Some(sum).filter(|code| *code <= u32::from(char::MAX));
                code?;
            }
        }
    }
}

/// Up to three digits, the first of which is read.
fn octal(of: &mut Translation<'_>, first: char) -> char {
    let mut code = first.to_digit(8).unwrap_or_default();
    for _ in 0..2 {
        let Some(digit) = of.rest.chars().next().and_then(|next| next.to_digit(8)) else { break };
        of.next();
        code = code * 8 + digit;
    }
    char::from_u32(code).unwrap_or_default()
}
