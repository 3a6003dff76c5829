//! Functions of texts: those of the language, and those whose work grows with what they are given. They ask for its cost
//! before they do it.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::bytes::Regex;

use super::super::pattern;
use super::budget::Purse;
use super::format;
use super::value::{Failure, Outcome, Value};

/// Compiled expressions that are kept. When there are more, keeping starts anew.
const MAX_PATTERNS: usize = 256;

/// How many characters one step makes, as on the real server.
const CHARACTERS: u64 = 10;

thread_local! {
    static PATTERNS: RefCell<HashMap<String, Result<Regex, String>>> = RefCell::default();
}

pub(super) fn call(name: &str, arguments: &[Value], purse: &mut Purse) -> Option<Outcome> {
    if !matches!(arguments.first(), Some(Value::Text(_))) {
        return join(name, arguments, purse);
    }
    if let Err(failure) = purse.spend(arguments[0].weight()) {
        return Some(Err(failure));
    }
    Some(match (name, arguments) {
        ("size", [Value::Text(text)]) => Ok(text.chars().count().into()),
        ("contains", [Value::Text(text), Value::Text(part)]) => Ok(text.contains(part.as_str()).into()),
        ("startsWith", [Value::Text(text), Value::Text(part)]) => Ok(text.starts_with(part.as_str()).into()),
        ("endsWith", [Value::Text(text), Value::Text(part)]) => Ok(text.ends_with(part.as_str()).into()),
        ("matches", [Value::Text(text), Value::Text(pattern)]) => {
            with_pattern(pattern, |regex| regex.is_match(text.as_bytes()).into()).map_err(Failure::Told)
        }
        ("find", [Value::Text(text), Value::Text(pattern)]) => {
            let first = |regex: &Regex| {
                regex.find(text.as_bytes()).and_then(|found| text.get(found.range())).unwrap_or_default().into()
            };
            with_pattern(pattern, first).map_err(|problem| illegal(&problem))
        }
        ("findAll", [Value::Text(text), Value::Text(pattern)]) => find_all(text, pattern, -1),
        ("findAll", [Value::Text(text), Value::Text(pattern), Value::Int(most)]) => find_all(text, pattern, *most),
        ("format", [Value::Text(text), Value::List(list)]) => format::format(text, &list.items).map(Value::from),
        ("charAt", [Value::Text(text), Value::Int(at)]) => character(text, *at),
        ("indexOf", [Value::Text(text), Value::Text(part)]) => position(text, part, 0),
        ("indexOf", [Value::Text(text), Value::Text(part), Value::Int(from)]) => position(text, part, *from),
        ("lastIndexOf", [Value::Text(text), Value::Text(part)]) => last_position(text, part, None),
        ("lastIndexOf", [Value::Text(text), Value::Text(part), Value::Int(to)]) => last_position(text, part, Some(*to)),
        ("lowerAscii", [Value::Text(text)]) => Ok(text.to_ascii_lowercase().into()),
        ("upperAscii", [Value::Text(text)]) => Ok(text.to_ascii_uppercase().into()),
        ("trim", [Value::Text(text)]) => Ok(text.trim().into()),
        ("split", [Value::Text(text), Value::Text(separator)]) => Ok(split(text, separator, -1).into()),
        ("split", [Value::Text(text), Value::Text(separator), Value::Int(most)]) => {
            Ok(split(text, separator, *most).into())
        }
        ("substring", [Value::Text(text), Value::Int(start)]) => substring(text, *start, None),
        ("substring", [Value::Text(text), Value::Int(start), Value::Int(end)]) => substring(text, *start, Some(*end)),
        ("replace", [Value::Text(text), Value::Text(old), Value::Text(new)]) => replace(text, old, new, -1, purse),
        ("replace", [Value::Text(text), Value::Text(old), Value::Text(new), Value::Int(most)]) => {
            replace(text, old, new, *most, purse)
        }
        _ => return None,
    })
}

/// Asks an expression, with the meaning that expressions have on the server.
fn with_pattern(pattern: &str, ask: impl FnOnce(&Regex) -> Value) -> Result<Value, String> {
    PATTERNS.with_borrow_mut(|patterns| {
        if patterns.len() > MAX_PATTERNS {
            patterns.clear();
        }
        let compiled = patterns.entry(pattern.to_owned()).or_insert_with(|| pattern::compile(pattern));
        compiled.as_ref().map(ask).map_err(Clone::clone)
    })
}

fn illegal(problem: &str) -> Failure {
    Failure::Told(format!("Illegal regex: {problem}"))
}

/// Less than nothing is as many as there are.
fn find_all(text: &str, pattern: &str, most: i64) -> Outcome {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let all = |regex: &Regex| -> Value {
        regex
            .find_iter(text.as_bytes())
            .take(most)
            .filter_map(|found| text.get(found.range()))
            .map(Value::from)
            .collect::<Vec<Value>>()
            .into()
    };
    with_pattern(pattern, all).map_err(|problem| illegal(&problem))
}

fn out_of_range(index: i64) -> Failure {
    Failure::Told(format!("index out of range: {index}"))
}

/// The place of a character, all of which are counted, and the end is one of them.
fn place(characters: &[char], index: i64) -> Result<usize, Failure> {
    usize::try_from(index).ok().filter(|index| *index <= characters.len()).ok_or_else(|| out_of_range(index))
}

fn character(text: &str, at: i64) -> Outcome {
    let characters: Vec<char> = text.chars().collect();
    let found = characters.get(place(&characters, at)?);
    Ok(found.map(char::to_string).unwrap_or_default().into())
}

fn substring(text: &str, start: i64, end: Option<i64>) -> Outcome {
    let characters: Vec<char> = text.chars().collect();
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Failure::Told(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let start = place(&characters, start)?;
    let end = end.map_or(Ok(characters.len()), |end| place(&characters, end))?;
    Ok(characters[start..end].iter().collect::<String>().into())
}

/// Where a part begins, from a place on.
fn position(text: &str, part: &str, from: i64) -> Outcome {
    let Ok(skipped) = usize::try_from(from) else { return Err(out_of_range(from)) };
    if part.is_empty() {
        return Ok(from.into());
    }
    let start = text.char_indices().nth(skipped).map_or(text.len(), |(index, _)| index);
    let found = text[start..].find(part).map(|index| text[..start + index].chars().count());
    Ok(found.map_or(Value::Int(-1), Value::from))
}

/// Where a part begins, not behind a place.
fn last_position(text: &str, part: &str, to: Option<i64>) -> Outcome {
    if let Some(to) = to.filter(|to| *to < 0) {
        return Err(out_of_range(to));
    }
    if part.is_empty() {
        return Ok(to.map_or_else(|| text.chars().count().into(), Value::Int));
    }
    let length = text.chars().count();
    let last = to.map_or(length, |to| usize::try_from(to).unwrap_or(usize::MAX));
    let begins = |(_, (index, _)): &(usize, (usize, char))| text[*index..].starts_with(part);
    // A place behind the text is none.
    let tried = if to.is_some() && last >= length { 0 } else { last.saturating_add(1) };
    let found = text.char_indices().enumerate().take(tried).filter(begins).last();
    Ok(found.map_or(Value::Int(-1), |(place, _)| place.into()))
}

/// The parts of a text, the last of which is all the rest; less than nothing is as many as there are.
fn split(text: &str, separator: &str, most: i64) -> Vec<Value> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if !separator.is_empty() {
        return text.splitn(most, separator).map(Value::from).collect();
    }
    let mut parts: Vec<Value> = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next().filter(|_| parts.len() < most) {
        let length = if parts.len() + 1 == most { rest.len() } else { character.len_utf8() };
        parts.push(rest[..length].into());
        rest = &rest[length..];
    }
    parts
}

fn replace(text: &str, old: &str, new: &str, most: i64, purse: &mut Purse) -> Outcome {
    let times = text.matches(old).count().min(usize::try_from(most).unwrap_or(usize::MAX));
    purse.spend(product(times, new.len()) / CHARACTERS)?;
    Ok(text.replacen(old, new, times).into())
}

fn join(name: &str, arguments: &[Value], purse: &mut Purse) -> Option<Outcome> {
    let (list, separator) = match (name, arguments) {
        ("join", [Value::List(list)]) => (list, ""),
        ("join", [Value::List(list), Value::Text(separator)]) => (list, separator.as_str()),
        _ => return None,
    };
    let text = |item: &Value| match item {
        Value::Text(text) => Ok(text.to_string()),
        _ => Err(Failure::NoOverload),
    };
    let paid = purse.spend(product(list.items.len(), separator.len()) / CHARACTERS);
    let texts = paid.and_then(|()| list.items.iter().map(text).collect::<Result<Vec<String>, _>>());
    Some(texts.map(|texts| texts.join(separator).into()))
}

fn product(one: usize, other: usize) -> u64 {
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    count(one).saturating_mul(count(other))
}
