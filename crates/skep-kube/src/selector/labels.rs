//! Label selectors, as they stand in queries: `app=web,tier in (a,b),!old`.

use std::collections::BTreeSet;
use std::fmt;

use super::lexer::{Token, tokens};
use crate::names::{label_key, label_value};
use crate::status::FieldError;

/// What is asked of one label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Equals,
    /// The same as `Equals`, written with two signs.
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// A condition on one label. Made only of valid keys and values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// Conditions that must all hold. Without any, everything is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// In the order of their keys.
    requirements: Vec<Requirement>,
    nothing: bool,
}

/// Why a text is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelSelectorError {
    #[error("found '{found}', expected: {expected}")]
    Unexpected { found: String, expected: &'static str },
    /// The fault is inside one requirement.
    #[error("unable to parse requirement: {0}")]
    Requirement(String),
}

impl Requirement {
    /// A requirement, or what is wrong with it.
    pub fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, LabelSelectorError> {
        values.sort();
        let complaints = label_key(key);
        if !complaints.is_empty() {
            // The real server has no path for the key either.
            return Err(errors(&[FieldError::invalid("<nil>", key, complaints.join("; "))]));
        }
        let mut problems = Vec::new();
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let complaint = "for 'Gt', 'Lt' operators, the value must be an integer";
                problems.push(FieldError::invalid(format!("values[{index}]"), value.as_str(), complaint));
            }
        }
        let complaint = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            _ => None,
        };
        problems.extend(complaint.map(|complaint| FieldError::invalid("values", values.clone(), complaint)));
        for (index, value) in values.iter().enumerate() {
            let complaints = label_value(value);
            if !complaints.is_empty() {
                let field = format!("values[{index}][{key}]");
                problems.push(FieldError::invalid(field, value.as_str(), complaints.join("; ")));
            }
        }
        if problems.is_empty() { Ok(Self { key: key.to_owned(), operator, values }) } else { Err(errors(&problems)) }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub const fn operator(&self) -> Operator {
        self.operator
    }

    /// Sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this value, or its absence, is what is asked for.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|listed| listed == value);
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => value.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compare(value, |label, bound| label > bound),
            Operator::LessThan => self.compare(value, |label, bound| label < bound),
        }
    }

    fn compare(&self, value: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
        let label = value.and_then(|value| value.parse().ok());
        let bound = self.values.first().and_then(|value| value.parse().ok());
        label.zip(bound).is_some_and(|(label, bound)| holds(label, bound))
    }
}

fn errors(problems: &[FieldError]) -> LabelSelectorError {
    let mut lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    LabelSelectorError::Requirement(match lines.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    })
}

impl LabelSelector {
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<Requirement> = requirements.into_iter().collect();
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Self { requirements, nothing: false }
    }

    /// A selector that selects no object.
    pub const fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// Reads the syntax of queries.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let mut parser = Parser { tokens: tokens(text).into_iter().peekable() };
        Ok(Self::new(parser.selector()?))
    }

    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &[(String, String)]) -> bool {
        self.matches_by(|key| labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str()))
    }

    /// Whether an object is selected, by its `metadata.labels`.
    pub fn matches_object(&self, object: &serde_json::Value) -> bool {
        self.matches_labels(&object["metadata"]["labels"])
    }

    /// Whether an object with this map of labels is selected.
    pub fn matches_labels(&self, labels: &serde_json::Value) -> bool {
        self.matches_by(|key| labels.get(key).and_then(serde_json::Value::as_str))
    }

    fn matches_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            requirement.fmt(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, operator, values } = self;
        let sign = match operator {
            Operator::Exists => return formatter.write_str(key),
            Operator::DoesNotExist => return write!(formatter, "!{key}"),
            Operator::In => return write!(formatter, "{key} in ({})", values.join(",")),
            Operator::NotIn => return write!(formatter, "{key} notin ({})", values.join(",")),
            Operator::Equals => "=",
            Operator::DoubleEquals => "==",
            Operator::NotEquals => "!=",
            Operator::GreaterThan => ">",
            Operator::LessThan => "<",
        };
        write!(formatter, "{key}{sign}{}", values.join(","))
    }
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
}

impl Parser {
    /// The next word; the end comes again and again.
    fn next(&mut self) -> Token {
        self.tokens.next().unwrap_or(Token::End)
    }

    fn peek(&mut self) -> Token {
        self.tokens.peek().cloned().unwrap_or(Token::End)
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, LabelSelectorError> {
        let unexpected =
            |found: &Token, expected| LabelSelectorError::Unexpected { found: found.text().to_owned(), expected };
        let mut requirements = Vec::new();
        match self.peek().or_identifier() {
            Token::End => return Ok(requirements),
            Token::Identifier(_) | Token::Exclamation => {}
            other => return Err(unexpected(&other, "!, identifier, or 'end of string'")),
        }
        loop {
            requirements.push(self.requirement()?);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Comma => {}
                other => return Err(unexpected(&other, "',' or 'end of string'")),
            }
            match self.peek().or_identifier() {
                Token::Identifier(_) | Token::Exclamation => {}
                other => return Err(unexpected(&other, "identifier after ','")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, LabelSelectorError> {
        let negated = self.peek() == Token::Exclamation;
        if negated {
            self.next();
        }
        let key = match self.next().or_identifier() {
            Token::Identifier(key) => key,
            other => return Err(unexpected(&other, ", expected: identifier")),
        };
        if negated {
            return Requirement::new(&key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(&key, Operator::Exists, Vec::new());
        }
        let operator = match self.next() {
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            other => return Err(unexpected(&other, ", expected: in, notin, =, ==, !=, gt, lt")),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        Requirement::new(&key, operator, values)
    }

    /// One value, which may be empty.
    fn value(&mut self) -> Result<String, LabelSelectorError> {
        match self.peek().or_identifier() {
            Token::End | Token::Comma => Ok(String::new()),
            Token::Identifier(value) => {
                self.next();
                Ok(value)
            }
            other => Err(unexpected(&other, ", expected: identifier")),
        }
    }

    /// Values in parentheses. An empty place between commas is an empty value; equal ones count once.
    fn values(&mut self) -> Result<Vec<String>, LabelSelectorError> {
        match self.next() {
            Token::OpenParenthesis => {}
            other => return Err(unexpected(&other, " expected: '('")),
        }
        let mut values = BTreeSet::new();
        if self.peek() == Token::CloseParenthesis {
            self.next();
            return Ok(vec![String::new()]);
        }
        let mut expected = ", expected: ',', ')' or identifier";
        loop {
            match self.peek().or_identifier() {
                Token::Identifier(value) => {
                    values.insert(value);
                    self.next();
                }
                Token::Comma | Token::CloseParenthesis => {
                    values.insert(String::new());
                }
                other => return Err(unexpected(&other, expected)),
            }
            match self.next() {
                Token::Comma => {}
                Token::CloseParenthesis => return Ok(values.into_iter().collect()),
                other => return Err(unexpected(&other, ", expected: ',' or ')'")),
            }
            expected = ", expected: ',', or identifier";
        }
    }
}

fn unexpected(found: &Token, expected: &str) -> LabelSelectorError {
    LabelSelectorError::Requirement(format!("found '{}'{expected}", found.text()))
}
