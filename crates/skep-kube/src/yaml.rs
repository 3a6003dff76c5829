//! YAML as the real server and its clients read it, with mistakes told as they tell them.

use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy};
use serde_saphyr::{Error, Location, Options};

use crate::decode;
use crate::go_text;

/// Nesting beyond this is refused. The real server allows 10 000 levels; this is what fits on the stack of a thread.
const MAX_DEPTH: usize = 64;
/// More nodes and events than the largest body can hold: its size is what limits them.
const MAX_NODES: usize = 4 * 1024 * 1024;

/// So much may be said again by aliases.
const MAX_REPEATED: usize = 100_000;

/// What is wrong with a text in which characters stand that mean nothing. It is told without the line.
const CONTROL: &str = "control characters are not allowed";

/// What is wrong with bytes that are no text.
pub const NOT_TEXT: &str = "yaml: invalid leading UTF-8 octet";

/// A document, and what is odd about it.
#[derive(Debug, Default, PartialEq)]
pub struct Document {
    pub value: Value,
    /// A message for the first member that occurs more than once, of which the last one counts.
    pub duplicates: Vec<String>,
}

/// Reads the first YAML document of a text as the JSON value that it stands for. The error begins with `yaml: `.
pub fn read(text: &str) -> Result<Document, String> {
    let (mut text, mut policy, mut duplicates) = (text, DuplicateKeyPolicy::Error, Vec::new());
    loop {
        match parse(text, policy) {
            Ok(mut value) => {
                value.sort_all_objects();
                return Ok(Document { value, duplicates });
            }
            // What follows the first document does not matter.
            Err(Error::MultipleDocuments { location, .. }) if until(text, location).len() < text.len() => {
                text = until(text, location);
            }
            Err(Error::DuplicateMappingKey { key, location }) if duplicates.is_empty() => {
                duplicates.push(twice(key.as_deref(), location));
                policy = DuplicateKeyPolicy::LastWins;
            }
            Err(error) => return Err(told(text, &error)),
        }
    }
}

/// Reads all YAML documents of a text as the JSON values that they stand for, without those that have nothing in them. A
/// member that occurs twice is a mistake. The error begins with `yaml: `.
pub fn read_all(text: &str) -> Result<Vec<Value>, String> {
    let documents: Result<Vec<Value>, Error> =
        serde_saphyr::from_multiple_with_options(text, options(DuplicateKeyPolicy::Error));
    let mut documents = documents.map_err(|error| told(text, &error))?;
    documents.retain(|document| !document.is_null());
    documents.iter_mut().for_each(settle_numbers);
    Ok(documents)
}

fn twice(key: Option<&str>, location: Location) -> String {
    format!("line {}: key {} already set in map", location.line(), go_text::quoted(key.unwrap_or_default()))
}

/// What a reader says that does not take members twice.
pub fn strictly(duplicates: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  "))
}

/// Writes a JSON value as one YAML document.
pub fn write(value: &Value) -> Result<String, String> {
    serde_saphyr::to_string(value).map_err(|error| error.to_string())
}

fn parse(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Value, Error> {
    let mut value = serde_saphyr::from_str_with_options(text, options(duplicate_keys))?;
    settle_numbers(&mut value);
    Ok(value)
}

fn options(duplicate_keys: DuplicateKeyPolicy) -> Options {
    let budget = serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        flow_nesting_limit: MAX_DEPTH,
        max_nodes: MAX_NODES,
        max_events: MAX_NODES,
        max_recorded_anchor_events: MAX_REPEATED,
    };
    let mut alias_limits = AliasLimits::default();
    alias_limits.max_total_replayed_events = MAX_REPEATED;
    serde_saphyr::options! {
        budget: budget,
        duplicate_keys: duplicate_keys,
        alias_limits: alias_limits,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

/// Whole numbers are whole however they are written.
fn settle_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(decode::whole) {
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle_numbers),
        Value::Object(members) => members.values_mut().for_each(settle_numbers),
        _ => {}
    }
}

/// The lines before the one in which something is.
fn until(text: &str, location: Location) -> &str {
    let before = usize::try_from(location.line()).unwrap_or_default().saturating_sub(1);
    let end = text.split_inclusive('\n').take(before).map(str::len).sum();
    &text[..end]
}

/// What is wrong, in the words that a Go program has for it where we know them, and the line where that is not the
/// first.
fn told(text: &str, error: &Error) -> String {
    let location = error.location().filter(|location| location.line() > 1);
    let line = location.map(|location| format!("line {}: ", location.line())).unwrap_or_default();
    match error.without_snippet() {
        Error::UnknownAnchor { location } => format!("yaml: unknown anchor '{}' referenced", alias(text, *location)),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(&line),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => "yaml: document contains excessive aliasing".to_owned(),
        Error::AliasError { error, .. } => told(text, error),
        Error::DuplicateMappingKey { key, location } => format!("yaml: {}", twice(key.as_deref(), *location)),
        Error::NonFiniteFloat { .. } => "json: unsupported value: NaN".to_owned(),
        Error::ExternalMessage { msg, .. } if msg.contains("recursion limit") => too_deep(&line),
        Error::ExternalMessage { msg, .. } => match in_go(msg) {
            CONTROL => format!("yaml: {CONTROL}"),
            words => format!("yaml: {line}{words}"),
        },
        other => {
            let words = other.to_string();
            format!("yaml: {line}{}", in_go(words.split(" at line ").next().unwrap_or_default()))
        }
    }
}

fn too_deep(line: &str) -> String {
    format!("yaml: {line}exceeded max depth of {MAX_DEPTH}")
}

/// The name of the anchor that is meant at a place.
fn alias(text: &str, location: Location) -> &str {
    let line = usize::try_from(location.line()).unwrap_or_default().saturating_sub(1);
    let rest = text.lines().nth(line).and_then(|line| line.split_once('*')).map_or("", |(_, rest)| rest);
    rest.split([' ', ',', '}', ']']).next().unwrap_or_default()
}

/// The parser's words, or Go's where they are others.
fn in_go(words: &str) -> &str {
    const OTHERS: [(&str, &str); 9] = [
        ("tabs disallowed", "found character that cannot start any token"),
        ("unexpected character: `\\u{", CONTROL),
        ("unexpected character", "found character that cannot start any token"),
        ("simple key expected", "could not find expected ':'"),
        ("quoted scalar", "found unexpected end of stream"),
        ("bracket '{'", "did not find expected ',' or '}'"),
        ("bracket '['", "did not find expected ',' or ']'"),
        ("expected <document start>", "found unknown directive name"),
        ("expected string scalar", "invalid map key"),
    ];
    // What comes first is what was being read then.
    let words = words.rsplit_once(", ").filter(|_| words.starts_with("while ")).map_or(words, |(_, problem)| problem);
    OTHERS.iter().find(|(ours, _)| words.contains(ours)).map_or(words, |(_, theirs)| theirs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What the real server says of the same text.
    #[test]
    fn mistakes_are_told_as_by_the_real_server() {
        for (text, told) in [
            ("kind: ConfigMap\nmetadata:\n\tname: x\n", "line 3: found character that cannot start any token"),
            ("a: v1\nkind: ConfigMap: x\n", "line 2: mapping values are not allowed in this context"),
            ("a: v1\nmetadata: {name: x\n", "line 2: did not find expected ',' or '}'"),
            ("a: v1\n  kind: x\n", "line 2: mapping values are not allowed in this context"),
            ("a: v1\nmetadata: *nope\n", "unknown anchor 'nope' referenced"),
            ("a: @v1\n", "found character that cannot start any token"),
            ("a: b\nc: \u{1}\n", "control characters are not allowed"),
        ] {
            assert_eq!(read(text), Err(format!("yaml: {told}")), "{text:?}");
        }
        assert_eq!(read("a: .nan"), Err("json: unsupported value: NaN".to_owned()));
    }

    /// The line is another one, or the object is not shown.
    #[test]
    fn other_mistakes_are_told_in_similar_words() {
        for (text, told) in [
            ("a: \"v1\nkind: x\n", "line 2: found unexpected end of stream"),
            ("a: v1\n- x\n", "line 2: did not find expected key"),
            ("a: b\n? c\nd\n", "line 3: could not find expected ':'"),
            ("%bad\na: v1\n", "line 2: found unknown directive name"),
            ("data: {? {a: b} : c}\n", "invalid map key"),
        ] {
            assert_eq!(read(text), Err(format!("yaml: {told}")), "{text:?}");
        }
    }

    #[test]
    fn nesting_has_an_end_and_so_have_aliases() {
        let flow = |levels: usize| format!("x: b\na: {}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&flow(MAX_DEPTH - 1)).is_ok());
        let too_deep = Err(format!("yaml: line 2: exceeded max depth of {MAX_DEPTH}"));
        assert_eq!(read(&flow(MAX_DEPTH)), too_deep);
        assert_eq!(read(&format!("x: b\na: {}", "[".repeat(1_000_000))), too_deep);
        let block = (0..200).map(|level| " ".repeat(level)).collect::<Vec<_>>().join("a:\n");
        assert!(read(&block).unwrap_err().ends_with(&format!("exceeded max depth of {MAX_DEPTH}")));
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (before, name) in ('a'..'j').zip('b'..) {
            let items = vec![format!("*{before}"); 9].join(",");
            bomb = format!("{bomb}{name}: &{name} [{items}]\n");
        }
        assert_eq!(read(&bomb), Err("yaml: document contains excessive aliasing".to_owned()));
    }

    #[test]
    fn values_are_those_of_the_real_server() {
        let Document { value, duplicates } =
            read("a: yes\nb: 010\nc: 2020-01-01\nd: !!binary aGk=\ne: 1.0\nf: {1: x}\na: no\n---\nbad: [\n").unwrap();
        assert_eq!(value, json!({ "a": false, "b": 8, "c": "2020-01-01", "d": "hi", "e": 1, "f": { "1": "x" } }));
        assert_eq!(duplicates, [r#"line 7: key "a" already set in map"#]);
        assert_eq!(read("x: &x {a: b}\ny:\n  <<: *x\n").unwrap().value["y"], json!({ "a": "b" }));
        assert_eq!(read("# nothing").unwrap(), Document::default());
    }

    #[test]
    fn all_documents_are_read_alike() {
        let text = "mode: 0440\n---\n# nothing\n---\na: 1.0\n";
        assert_eq!(read_all(text).unwrap(), [json!({ "mode": 0o440 }), json!({ "a": 1 })]);
        assert_eq!(read_all("a: 1\n---\nb: 1\nb: 2\n"), Err(r#"yaml: line 4: key "b" already set in map"#.to_owned()));
        assert_eq!(read_all("").unwrap(), Vec::<Value>::new());
    }
}
