//! Inputs that are nearly right: documents of the corpus, changed here and there.
//!
//! JSON is changed as a tree, so that most mutants are still JSON and get past the parser.

use serde_json::{Map, Value, json};

use crate::parts::{join, split};
use crate::random::Random;

const MOST_CHANGES: usize = 5;
/// Beyond what the server reads, to reach its limit on nesting.
const DEEPEST: usize = 130;
const LONGEST_REPEAT: usize = 40;

/// Words that mean something to some parser.
const WORDS: [&str; 40] = [
    "$patch",
    "replace",
    "delete",
    "merge",
    "$retainKeys",
    "$setElementOrder/",
    "$deleteFromPrimitiveList/",
    "/-",
    "/0",
    "~0",
    "~1",
    "..",
    "[*]",
    "[?(@.",
    "==",
    "!=",
    "[-1:",
    "{",
    "}",
    "(",
    ")",
    ",",
    " in ",
    " notin ",
    "!",
    "=",
    "\\",
    "'",
    "\"",
    "f:",
    "k:{",
    "v:",
    "i:",
    "self",
    "oldSelf",
    ".all(x, ",
    "size(",
    "9223372036854775807",
    "\u{1F600}",
    "\u{0}",
];

/// Makes inputs from those of a corpus.
#[derive(Debug)]
pub(crate) struct Mutator {
    inputs: Vec<Vec<String>>,
    /// Every value in every document, to be put elsewhere.
    values: Vec<Value>,
    /// The names of all members.
    names: Vec<String>,
}

impl Mutator {
    pub(crate) fn new(corpus: &[Vec<u8>]) -> Self {
        let inputs: Vec<Vec<String>> =
            corpus.iter().filter_map(|input| Some(split(input)?.into_iter().map(str::to_owned).collect())).collect();
        let mut mutator = Self { inputs, values: Vec::new(), names: Vec::new() };
        let documents: Vec<Value> =
            mutator.inputs.iter().flatten().filter_map(|part| serde_json::from_str(part).ok()).collect();
        for document in &documents {
            for place in places(document) {
                let Some(value) = document.pointer(&place) else { continue };
                mutator.names.extend(value.as_object().into_iter().flat_map(Map::keys).cloned());
                mutator.values.push(value.clone());
            }
        }
        mutator.values.extend([json!(null), json!(true), json!(0), json!(-1), json!(i64::MAX), json!(u64::MAX)]);
        mutator.values.extend([json!(1e300), json!(0.5), json!(""), json!({}), json!([])]);
        mutator
    }

    pub(crate) fn input(&self, random: &mut Random) -> Vec<u8> {
        let mut parts = random.pick(&self.inputs).cloned().unwrap_or_default();
        for _ in 0..=random.below(MOST_CHANGES) {
            let place = random.below(parts.len());
            let Some(part) = parts.get_mut(place) else { continue };
            *part = match serde_json::from_str::<Value>(part) {
                // Now and then what looks like JSON must not be.
                Ok(mut document) if random.below(8) > 0 => {
                    self.change_tree(&mut document, random);
                    document.to_string()
                }
                _ => self.change_text(part, random),
            };
        }
        join(&parts)
    }

    fn change_tree(&self, document: &mut Value, random: &mut Random) {
        let places = places(document);
        let Some(place) = random.pick(&places) else { return };
        let Some(value) = document.pointer_mut(place) else { return };
        let other = random.pick(&self.values).cloned().unwrap_or_default();
        let name = random.pick(&self.names).cloned().unwrap_or_default();
        match (random.below(6), value) {
            (0, value) => *value = wrap(value.take(), &name, random),
            (1, Value::String(text)) => *text = self.change_text(text, random),
            (1 | 2, Value::Object(members)) => {
                members.insert(name, other);
            }
            (1 | 2, Value::Array(items)) => items.insert(random.below(items.len() + 1), other),
            (3, Value::Object(members)) => {
                let gone = random.pick(&members.keys().cloned().collect::<Vec<_>>()).cloned();
                let gone = gone.and_then(|gone| members.remove(&gone));
                // Half of the time it is only renamed.
                if let Some(gone) = gone.filter(|_| random.below(2) == 0) {
                    members.insert(name, gone);
                }
            }
            (3, Value::Array(items)) if !items.is_empty() => {
                items.remove(random.below(items.len()));
            }
            (4, Value::Array(items)) => {
                let again = random.pick(items).cloned();
                items.extend(again);
            }
            (_, value) => *value = other,
        }
    }

    fn change_text(&self, text: &str, random: &mut Random) -> String {
        let characters: Vec<char> = text.chars().collect();
        let start = random.below(characters.len() + 1);
        let end = start + random.below(characters.len() + 1 - start).min(random.below(LONGEST_REPEAT));
        let (before, rest) = characters.split_at(start);
        let (middle, after) = rest.split_at(end - start);
        let middle: String = match random.below(5) {
            0 => String::new(),
            1 => middle.iter().collect::<String>().repeat(random.below(LONGEST_REPEAT)),
            2 => random.pick(&self.names).cloned().unwrap_or_default(),
            3 => random.pick(&characters).into_iter().collect(),
            _ => random.pick(&WORDS).copied().unwrap_or_default().to_owned(),
        };
        before.iter().copied().chain(middle.chars()).chain(after.iter().copied()).collect()
    }
}

/// Puts a value inside others, sometimes far inside.
fn wrap(mut value: Value, name: &str, random: &mut Random) -> Value {
    let depth = if random.below(20) == 0 { random.below(DEEPEST) } else { 1 };
    for _ in 0..depth {
        value = if random.below(2) == 0 { json!([value]) } else { json!({ name: value }) };
    }
    value
}

/// JSON pointers to every value of a document.
fn places(document: &Value) -> Vec<String> {
    fn walk(value: &Value, place: String, places: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, below) in members {
                    walk(below, format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), places);
                }
            }
            Value::Array(items) => {
                for (index, below) in items.iter().enumerate() {
                    walk(below, format!("{place}/{index}"), places);
                }
            }
            _ => {}
        }
        places.push(place);
    }
    let mut places = Vec::new();
    walk(document, String::new(), &mut places);
    places
}
