//! JSON with numbers as they were written. What reads JSON here has no room for numbers of many digits, and writes others in
//! its own way, so that these travel as strings with a mark that nobody else knows.

use serde_json::{Number, Value};
use skep_mcp::json;
use uuid::Uuid;

/// The mark, another one each time.
#[derive(Debug)]
pub(super) struct Exact(String);

impl Exact {
    pub(super) fn new() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    /// A value. The text has to be JSON.
    pub(super) fn read(&self, text: &str) -> Option<Value> {
        serde_json::from_str(&self.marked(text)).ok()
    }

    /// The text with every number as a marked string that would be written in another way.
    fn marked(&self, text: &str) -> String {
        let (mut marked, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(start) = rest.find(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
            let (before, from) = rest.split_at(start);
            let end = if from.starts_with('"') { after_string(from) } else { after_number(from) };
            let (token, after) = from.split_at(end);
            marked.push_str(before);
            if token.starts_with('"') || is_usual(token) {
                marked.push_str(token);
            } else {
                marked.extend(["\"", &self.0, token, "\""]);
            }
            rest = after;
        }
        marked + rest
    }

    /// The number that a marked string stands for, as it was written.
    pub(super) fn number<'a>(&self, value: &'a Value) -> Option<&'a str> {
        value.as_str()?.strip_prefix(&*self.0)
    }

    /// A value as JSON.
    pub(super) fn text(&self, value: &Value) -> String {
        match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.text(item)).collect();
                format!("[{}]", items.join(","))
            }
            Value::Object(members) => {
                let member = |(name, member): (&String, &Value)| format!("{}:{}", json::quote(name), self.text(member));
                let members: Vec<String> = members.iter().map(member).collect();
                format!("{{{}}}", members.join(","))
            }
            _ => self.number(value).map_or_else(|| value.to_string(), str::to_owned),
        }
    }

    /// Whether two values are the same thing: numbers are compared by what they are, not by how they are written.
    pub(super) fn means(&self, one: &Value, other: &Value) -> bool {
        match (one, other) {
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| self.means(one, other))
            }
            (Value::Object(one), Value::Object(other)) => {
                let is_there =
                    |(name, one): (&String, &Value)| other.get(name).is_some_and(|other| self.means(one, other));
                one.len() == other.len() && one.iter().all(is_there)
            }
            _ => one == other || self.decimal(one).is_some_and(|one| Some(one) == self.decimal(other)),
        }
    }

    /// A number as its digits and where its point is, so that every number has one form.
    fn decimal(&self, value: &Value) -> Option<(bool, String, i64)> {
        let text = match value {
            Value::Number(number) => number.to_string(),
            _ => self.number(value)?.to_owned(),
        };
        let (is_negative, text) = text.strip_prefix('-').map_or((false, &*text), |text| (true, text));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let zeros = i64::try_from(digits.len() - digits.trim_end_matches('0').len()).ok()?;
        let digits = digits.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some((false, digits, 0));
        }
        let exponent: i64 = exponent.parse().ok()?;
        let point = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(zeros)?;
        Some((is_negative, digits, point))
    }
}

/// Whether a number comes out as it goes in.
fn is_usual(number: &str) -> bool {
    // Of two zeros one would be taken for the other.
    number != "-0.0" && serde_json::from_str::<Number>(number).is_ok_and(|read| read.to_string() == number)
}

/// Where a string that something begins with ends.
fn after_string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().enumerate().skip(1).find(|(_, byte)| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(place, _)| place + 1)
}

fn after_number(text: &str) -> usize {
    text.find(|letter: char| !matches!(letter, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_out_as_it_went_in() {
        for text in [
            "[1,-0,0.0,-0.0,1.50,1E2,1e999,12345678901234567890123,-7,0.1]",
            r#"{"a 1.50":"1.50 \\\" 2.0","b":{"c":[1.0,1.00,[]]},"d":null,"e":true}"#,
            "1e5",
            r#""7.00""#,
        ] {
            let exact = Exact::new();
            let read = exact.read(text).unwrap();
            assert_eq!(exact.text(&read), text);
        }
    }

    #[test]
    fn numbers_mean_what_they_are() {
        let means = |one: &str, other: &str| {
            let exact = Exact::new();
            exact.means(&exact.read(one).unwrap(), &exact.read(other).unwrap())
        };
        for (one, other) in
            [("1", "1.0"), ("100", "1e2"), ("[0.10]", "[1e-1]"), ("-0", "0.00"), (r#"{"a":1}"#, r#"{"a":1.0}"#)]
        {
            assert!(means(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("12345678901234567890123", "12345678901234567890124"),
            ("1", "-1"),
            ("1", r#""1""#),
            ("1.5", r#""1.5""#),
            ("[1]", "[1,1]"),
            ("1e999", "1e998"),
            ("null", "0"),
        ] {
            assert!(!means(one, other), "{one} {other}");
        }
    }
}
