//! Replacements inside of texts.

use std::collections::BTreeMap;

use regex::{Captures, Regex};
use serde_json::{Map, Value};
use time::{Duration, OffsetDateTime};

/// Patterns of what a server makes up, and what becomes of it.
const MADE_UP: [(&str, &str); 8] = [
    (r"eyJ[\w-]{8,}\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"\bkube-api-access-[a-z0-9]{5}\b", "kube-api-access-GENERATED"),
    (r"\b127\.0\.0\.1:\d+", "SERVER"),
    (r"(Too large resource version: \d+, current: )\d+", "${1}CURRENT"),
    (r"(too old resource version: \d+ )\(\d+\)", "${1}(CURRENT)"),
    (r"(ResourceVersion in record )\(\d+\)", "${1}(CURRENT)"),
    // A patch that does not fit is told with the whole object, in the order of members that Go happens to have.
    (r#"(?s)Invalid value: "\{\\"apiVersion\\".*\}": "#, "Invalid value: OBJECT: "),
    (r"\bJTI=[0-9a-f-]{36}", "JTI=ID"),
];

/// What is replaced, and the tokens given out so far.
pub(crate) struct Texts {
    /// Longest first, so that a name is found before its part.
    names: Vec<(String, String)>,
    made_up: Vec<(Regex, &'static str)>,
    uid: Option<Regex>,
    time: Option<Regex>,
    uids: BTreeMap<String, usize>,
    /// Yesterday, today and tomorrow: a scenario that names a time names one far away.
    days: [String; 3],
}

impl Texts {
    pub(super) fn new<'a>(namespace: &str, unique: &str, bodies: impl Iterator<Item = &'a Value>) -> Self {
        let mut given = Given::default();
        bodies.for_each(|body| given.find(body));
        let mut names = given.names;
        names.push((namespace.to_owned(), "NAMESPACE".to_owned()));
        names.push((unique.to_owned(), "UNIQUE".to_owned()));
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self::of(names)
    }

    /// Replaces what is known by its looks alone.
    pub(crate) fn without_names() -> Self {
        Self::of(Vec::new())
    }

    fn of(names: Vec<(String, String)>) -> Self {
        // The patterns are constants; the test below compiles each of them.
        let made_up = MADE_UP.iter().filter_map(|(pattern, token)| Some((Regex::new(pattern).ok()?, *token)));
        Self {
            names,
            made_up: made_up.collect(),
            uid: Regex::new(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok(),
            time: Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").ok(),
            uids: BTreeMap::new(),
            days: [-1, 0, 1].map(day_from_now),
        }
    }

    pub(super) fn replace(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(members) => {
                let replaced = std::mem::take(members).into_iter().map(|(key, mut member)| {
                    self.replace(&mut member);
                    (self.text(&key), member)
                });
                *members = replaced.collect::<Map<_, _>>();
            }
            _ => {}
        }
    }

    pub(crate) fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, token) in &self.names {
            if text.contains(name.as_str()) {
                text = text.replace(name.as_str(), token);
            }
        }
        for (pattern, token) in &self.made_up {
            if pattern.is_match(&text) {
                text = pattern.replace_all(&text, *token).into_owned();
            }
        }
        self.uids(self.times(text))
    }

    fn uids(&mut self, text: String) -> String {
        let (Some(pattern), uids) = (&self.uid, &mut self.uids) else {
            return text;
        };
        let token = |found: &Captures<'_>| {
            let next = uids.len() + 1;
            format!("uid{}", uids.entry(found[0].to_owned()).or_insert(next))
        };
        pattern.replace_all(&text, token).into_owned()
    }

    fn times(&self, text: String) -> String {
        let Some(pattern) = &self.time else {
            return text;
        };
        let token = |found: &Captures<'_>| {
            let near = self.days.iter().any(|day| found[0].starts_with(day));
            match (near, found.get(1)) {
                (false, _) => found[0].to_owned(),
                (true, None) => "TIME".to_owned(),
                (true, Some(_)) => "MICROTIME".to_owned(),
            }
        };
        pattern.replace_all(&text, token).into_owned()
    }
}

fn day_from_now(days: i64) -> String {
    let date = (OffsetDateTime::now_utc() + Duration::days(days)).date();
    format!("{:04}-{:02}-{:02}T", date.year(), u8::from(date.month()), date.day())
}

/// Names and addresses that the server gave.
#[derive(Default)]
struct Given {
    names: Vec<(String, String)>,
    generated: usize,
    addresses: usize,
}

impl Given {
    fn find(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                if let (Some(prefix), Some(name)) = (text(value, "generateName"), text(value, "name"))
                    && name.starts_with(prefix)
                    && !self.knows(name)
                {
                    self.generated += 1;
                    self.names.push((name.to_owned(), format!("{prefix}GENERATED{}", self.generated)));
                }
                if let Some(address) = text(value, "clusterIP").filter(|address| address.contains(['.', ':']))
                    && !self.knows(address)
                {
                    self.addresses += 1;
                    self.names.push((address.to_owned(), format!("CLUSTERIP{}", self.addresses)));
                }
                members.values().for_each(|member| self.find(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.find(item)),
            _ => {}
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| known == name)
    }
}

fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_a_pattern() {
        for (pattern, _) in MADE_UP {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
        let texts = Texts::new("n", "u", std::iter::empty());
        assert!(texts.uid.is_some() && texts.time.is_some());
    }
}
