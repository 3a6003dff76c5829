//! The functions that rules may call, and what they take: those of the server's own environment, as far as we have them.
//!
//! `string:contains(string) -> bool` is a method. `A` and `B` stand for any type, `O` for one whose values have an order,
//! `N` for one whose values can be added up.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::kind::{DURATION, Kind, TIMESTAMP};
use super::value::Value;

const DECLARATIONS: &str = include_str!("overloads.txt");

/// One way to call a function.
#[derive(Debug)]
struct Overload {
    is_method: bool,
    /// Of a method, the first is what it is called on.
    parameters: Vec<Kind>,
    result: Kind,
}

static OVERLOADS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut overloads: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for (name, overload) in DECLARATIONS.lines().filter_map(declaration) {
        overloads.entry(name).or_default().push(overload);
    }
    overloads
});

/// Whether there is a function of this name.
pub(super) fn exists(name: &str) -> bool {
    OVERLOADS.contains_key(name)
}

/// The type of what a function returns for arguments of some types. Nothing when it takes no such.
pub(super) fn result(name: &str, on: bool, arguments: &[Kind]) -> Option<Kind> {
    let mut found: Option<Kind> = None;
    for overload in candidates(name, on, arguments.len()) {
        let mut letters = Vec::new();
        let fits =
            overload.parameters.iter().zip(arguments).all(|(parameter, kind)| take(parameter, kind, &mut letters));
        if fits {
            let result = fill(&overload.result, &letters);
            found = Some(match found {
                Some(other) if !other.goes_with(&result) => Kind::Dynamic,
                Some(other) => other,
                None => result,
            });
        }
    }
    found
}

/// Whether a function takes some values.
pub(super) fn takes(name: &str, on: bool, arguments: &[Value]) -> bool {
    candidates(name, on, arguments.len()).any(|overload| {
        overload.parameters.iter().zip(arguments).all(|(parameter, argument)| is_of(parameter, argument))
    })
}

fn candidates(name: &str, on: bool, count: usize) -> impl Iterator<Item = &'static Overload> {
    let all = OVERLOADS.get(name).map(Vec::as_slice).unwrap_or_default();
    all.iter().filter(move |overload| overload.is_method == on && overload.parameters.len() == count)
}

/// Whether an argument may be what a parameter asks for. Takes note of what letters stand for.
fn take(parameter: &Kind, argument: &Kind, letters: &mut Vec<(char, Kind)>) -> bool {
    match (parameter, argument) {
        (Kind::Dynamic, _) | (_, Kind::Dynamic) => true,
        (Kind::Parameter(letter), kind) => {
            let allowed = match letter {
                'O' => kind.is_ordered(),
                'N' => kind.is_summable(),
                _ => true,
            };
            let known = letters.iter().find(|(known, _)| known == letter).map(|(_, kind)| kind.clone());
            if let Some(known) = known {
                return allowed && known.goes_with(kind);
            }
            letters.push((*letter, kind.clone()));
            allowed
        }
        (Kind::List(one), Kind::List(other)) | (Kind::Optional(one), Kind::Optional(other)) => {
            take(one, other, letters)
        }
        (Kind::Map(one_keys, one), Kind::Map(other_keys, other)) => {
            take(one_keys, other_keys, letters) && take(one, other, letters)
        }
        (one, other) => one.goes_with(other),
    }
}

/// A type in which letters are what they stand for.
fn fill(kind: &Kind, letters: &[(char, Kind)]) -> Kind {
    match kind {
        Kind::Parameter(letter) => {
            letters.iter().find(|(known, _)| known == letter).map_or(Kind::Dynamic, |(_, kind)| kind.clone())
        }
        Kind::List(items) => Kind::list(fill(items, letters)),
        Kind::Optional(inner) => Kind::optional(fill(inner, letters)),
        Kind::Type(inner) => Kind::Type(Box::new(fill(inner, letters))),
        Kind::Map(keys, values) => Kind::map(fill(keys, letters), fill(values, letters)),
        other => other.clone(),
    }
}

fn is_of(parameter: &Kind, value: &Value) -> bool {
    match (parameter, value) {
        (Kind::Parameter('O' | 'N'), value) => value.compare(value).is_some(),
        (Kind::Dynamic | Kind::Parameter(_), _)
        | (Kind::List(_), Value::List(_))
        | (Kind::Map(..), Value::Map(_))
        | (Kind::Optional(_), Value::Optional(_))
        | (Kind::Type(_), Value::Type(_))
        | (Kind::Named(DURATION), Value::Duration(_))
        | (Kind::Named(TIMESTAMP), Value::Timestamp(_)) => true,
        (Kind::Named(name), Value::Foreign(opaque)) => opaque.runtime_type_name() == *name,
        (Kind::Named(name), value) => value.type_name() == *name,
        _ => false,
    }
}

/// Reads a line: `string:contains(string) -> bool`.
fn declaration(line: &'static str) -> Option<(&'static str, Overload)> {
    let (call, result) = line.split_once(" -> ")?;
    let (on, call) = match call.split_once(':') {
        Some((on, call)) => (Some(on), call),
        None => (None, call),
    };
    let (name, parameters) = call.split_once('(')?;
    let parameters = split(parameters.strip_suffix(')')?);
    let parameters = on.into_iter().chain(parameters).map(kind).collect();
    Some((name, Overload { is_method: on.is_some(), parameters, result: kind(result) }))
}

/// The parts of a list of types, which may have brackets and commas of their own.
fn split(list: &'static str) -> Vec<&'static str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (index, character) in list.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn kind(name: &'static str) -> Kind {
    let parts = |of: &str| name.strip_prefix(of).and_then(|rest| rest.strip_suffix(')')).map(split);
    let mut letters = name.chars();
    if let (Some(letter @ 'A'..='Z'), None) = (letters.next(), letters.next()) {
        return Kind::Parameter(letter);
    }
    if let Some([items]) = parts("list(").as_deref() {
        return Kind::list(kind(items));
    }
    if let Some([keys, values]) = parts("map(").as_deref() {
        return Kind::map(kind(keys), kind(values));
    }
    if let Some([inner]) = parts("optional_type(").as_deref() {
        return Kind::optional(kind(inner));
    }
    if let Some([inner]) = parts("type(").as_deref() {
        return Kind::Type(Box::new(kind(inner)));
    }
    if name == "dyn" { Kind::Dynamic } else { Kind::Named(name) }
}

#[cfg(test)]
mod tests {
    use super::super::kind::{BOOL, INT};
    use super::*;

    #[test]
    fn every_line_declares_a_function() {
        for line in DECLARATIONS.lines().filter(|line| !line.is_empty()) {
            assert!(declaration(line).is_some(), "{line}");
        }
    }

    #[test]
    fn letters_stand_for_one_type_each() {
        let list = |items: Kind| Kind::list(items);
        let named = |kind: Option<Kind>| kind.map(|kind| kind.name());
        assert_eq!(named(result("slice", true, &[list(BOOL), INT, Kind::Dynamic])).as_deref(), Some("list(bool)"));
        assert_eq!(named(result("sets.contains", false, &[list(BOOL), list(INT)])), None);
        assert_eq!(named(result("indexOf", true, &[list(BOOL), BOOL])).as_deref(), Some("int"));
        assert_eq!(named(result("size", false, &[Kind::Dynamic])).as_deref(), Some("int"));
        assert_eq!(named(result("ip", true, &[Kind::Dynamic])).as_deref(), Some("net.IP"));
    }
}
