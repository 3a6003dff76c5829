//! Regular expressions with the meaning they have on the real server, which reads them as RE2.
//!
//! The `regex` crate is a close relative. What differs is translated: `\d`, `\w`, `\s` and `\b` know ASCII only, a `[`
//! inside a class is a plain character, and braces that are no repetition are plain too.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

use super::Schema;

/// What a compiled expression may take in memory.
const SIZE_LIMIT: usize = 4 << 20;

/// The compiled patterns of a schema.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    compiled: HashMap<String, Option<Regex>>,
}

impl Patterns {
    /// Compiles every pattern that a schema mentions.
    pub(crate) fn of(schema: &Schema) -> Self {
        let mut patterns = Self::default();
        patterns.collect(schema);
        patterns
    }

    fn collect(&mut self, schema: &Schema) {
        if let Some(pattern) = &schema.pattern
            && !self.compiled.contains_key(pattern)
        {
            self.compiled.insert(pattern.clone(), compile(pattern).ok());
        }
        let inner = schema.properties.values().chain(&schema.additional_properties).chain(&schema.items);
        inner.for_each(|schema| self.collect(schema));
        let branches = schema.all_of.iter().chain(&schema.any_of).chain(&schema.one_of).chain(schema.not.as_deref());
        branches.for_each(|schema| self.collect(schema));
    }

    /// Whether a text matches. A pattern that is none matches nothing.
    pub(crate) fn matches(&self, pattern: &str, text: &str) -> bool {
        self.compiled.get(pattern).and_then(Option::as_ref).is_some_and(|regex| regex.is_match(text))
    }
}

/// Compiles an expression; the error is what Go's parser says.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let told = |problem: String| format!("error parsing regexp: {problem}");
    let translated = translate(pattern).map_err(told)?;
    RegexBuilder::new(&translated)
        .size_limit(SIZE_LIMIT)
        .build()
        .map_err(|_| told(format!("expression cannot be compiled: `{pattern}`")))
}

fn translate(pattern: &str) -> Result<String, String> {
    let mut translation = Translation { rest: pattern, text: String::with_capacity(pattern.len()), open_groups: 0 };
    translation.expression(pattern)?;
    Ok(translation.text)
}

struct Translation<'a> {
    rest: &'a str,
    text: String,
    open_groups: usize,
}

impl Translation<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn expression(&mut self, pattern: &str) -> Result<(), String> {
        // Whether something stands before, that can be repeated.
        let mut repeatable = false;
        loop {
            let here = self.rest;
            let Some(character) = self.next() else {
                break;
            };
            match character {
                '\\' => self.escape(false)?,
                '[' => self.class(here)?,
                '(' => {
                    self.group(here)?;
                    repeatable = false;
                    continue;
                }
                ')' => {
                    self.open_groups =
                        self.open_groups.checked_sub(1).ok_or_else(|| format!("unexpected ): `{pattern}`"))?;
                    self.text.push(')');
                }
                '*' | '+' | '?' if !repeatable => {
                    return Err(format!("missing argument to repetition operator: `{character}`"));
                }
                '{' => match repetition(self.rest) {
                    Some(inside) if repeatable => {
                        self.check_count(here, inside)?;
                        self.text.push('{');
                        self.text.push_str(&self.rest[..=inside]);
                        self.rest = &self.rest[inside + 1..];
                    }
                    Some(inside) => {
                        let operator = &here[..inside + 2];
                        return Err(format!("missing argument to repetition operator: `{operator}`"));
                    }
                    None => self.text.push_str(r"\{"),
                },
                '}' => self.text.push_str(r"\}"),
                other => self.text.push(other),
            }
            repeatable = character != '|';
        }
        if self.open_groups > 0 { Err(format!("missing closing ): `{pattern}`")) } else { Ok(()) }
    }

    /// Counts above a thousand are refused.
    fn check_count(&self, here: &str, inside: usize) -> Result<(), String> {
        let counts = self.rest[..inside].split(',').filter(|count| !count.is_empty());
        let counts: Vec<u32> = counts.map(|count| count.parse().unwrap_or(u32::MAX)).collect();
        let ordered = counts.first() <= counts.last();
        if ordered && counts.iter().all(|count| *count <= 1000) {
            return Ok(());
        }
        Err(format!("invalid repeat count: `{}`", &here[..inside + 2]))
    }

    /// After `(`: a plain group, a named one or flags.
    fn group(&mut self, here: &str) -> Result<(), String> {
        self.open_groups += 1;
        self.text.push('(');
        if !self.rest.starts_with('?') {
            return Ok(());
        }
        let head: String = self.rest.chars().take_while(|character| !matches!(character, ')' | ':' | '>')).collect();
        let flags = &head[1..];
        let known = flags.starts_with("P<")
            || (flags.starts_with('<') && !flags.starts_with("<=") && !flags.starts_with("<!"))
            || (!flags.is_empty() || self.rest.starts_with("?:"))
                && flags.chars().all(|flag| matches!(flag, 'i' | 'm' | 's' | 'U' | '-'));
        if known {
            self.text.push_str(&head);
            self.rest = &self.rest[head.len()..];
            return Ok(());
        }
        let shown: String = here.chars().take(if flags.starts_with('<') { 4 } else { 3 }).collect();
        Err(format!("invalid or unsupported Perl syntax: `{shown}`"))
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(character) = self.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let wrap = |inside: &str| if in_class { inside.to_owned() } else { format!("[{inside}]") };
        match character {
            'd' => self.text.push_str(&wrap("0-9")),
            'w' => self.text.push_str(&wrap("0-9A-Za-z_")),
            's' => self.text.push_str(&wrap(r"\t\n\f\r ")),
            'D' => self.text.push_str("[^0-9]"),
            'W' => self.text.push_str("[^0-9A-Za-z_]"),
            'S' => self.text.push_str(r"[^\t\n\f\r ]"),
            'b' if !in_class => self.text.push_str(r"(?-u:\b)"),
            'Q' => {
                let literal = self.rest.split_once(r"\E").map_or(self.rest, |(literal, _)| literal);
                self.text.push_str(&regex::escape(literal));
                self.rest = self.rest[literal.len()..].strip_prefix(r"\E").unwrap_or_default();
            }
            'A' | 'B' | 'z' if !in_class => self.push_escaped(character),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'x' | 'p' | 'P' => self.push_escaped(character),
            '0' => self.text.push_str(r"\x00"),
            punctuation if punctuation.is_ascii_punctuation() => self.push_escaped(punctuation),
            other => return Err(format!(r"invalid escape sequence: `\{other}`")),
        }
        Ok(())
    }

    fn push_escaped(&mut self, character: char) {
        self.text.push('\\');
        self.text.push(character);
    }

    /// After `[`, up to and with the `]` that closes the class.
    fn class(&mut self, here: &str) -> Result<(), String> {
        self.text.push('[');
        if self.rest.starts_with('^') {
            self.next();
            self.text.push('^');
        }
        let mut first = true;
        loop {
            if self.rest.starts_with("[:")
                && let Some(end) = self.rest.find(":]")
            {
                self.text.push_str(&self.rest[..end + 2]);
                self.rest = &self.rest[end + 2..];
                first = false;
                continue;
            }
            match self.next() {
                None => return Err(format!("missing closing ]: `{here}`")),
                Some(']') if !first => break,
                Some('\\') => self.escape(true)?,
                // Plain characters here, operators of the regex crate.
                Some(plain @ ('[' | ']' | '&' | '~')) => self.push_escaped(plain),
                Some('-') if self.rest.starts_with('-') => self.push_escaped('-'),
                Some(other) => self.text.push(other),
            }
            first = false;
        }
        self.text.push(']');
        Ok(())
    }
}

/// Where the braces of a repetition close, when they are one.
fn repetition(rest: &str) -> Option<usize> {
    let end = rest.find('}')?;
    let inside = &rest[..end];
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && digits(least) && digits(most)).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_know_ascii_only() {
        for (pattern, text, expected) in [
            (r"^\d$", "٣", false),
            (r"^\w$", "é", false),
            (r"^\s$", "\u{a0}", false),
            (r"^[\d\-]+$", "1-2", true),
            (r"^[^\s]$", "\u{a0}", true),
            (r"^.$", "é", true),
            (r"^[[a]$", "[", true),
            (r"^[a&&b]+$", "&", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^[]a]$", "]", true),
            (r"^[[:space:]]$", "\t", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^(?i)ABC$", "abc", true),
            (r"^(?P<x>a)|b{2,3}$", "bb", true),
        ] {
            assert_eq!(compile(pattern).unwrap().is_match(text), expected, "{pattern} {text}");
        }
    }

    /// Tried on the real server.
    #[test]
    fn mistakes_are_told_in_the_words_of_the_real_server() {
        for (pattern, problem) in [
            ("([", "missing closing ]: `[`"),
            ("(x", "missing closing ): `(x`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("x)", "unexpected ): `x)`"),
            ("*", "missing argument to repetition operator: `*`"),
        ] {
            assert_eq!(compile(pattern).unwrap_err(), format!("error parsing regexp: {problem}"));
        }
    }

    proptest::proptest! {
        #[test]
        fn patterns_never_panic(pattern in r"[\[\](){}*+?|\\^$.a-c:&~,0-3PQEdwb<>=!-]{0,20}") {
            let _ = compile(&pattern);
        }
    }
}
