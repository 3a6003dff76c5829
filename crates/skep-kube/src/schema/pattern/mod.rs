//! Regular expressions with the meaning they have on the real server, which reads them as RE2.
//!
//! The `regex` crate is a close relative. What differs is translated ([`translate`]), and what RE2 refuses is refused.

mod class;
mod translate;

use std::collections::HashMap;

// Of bytes, because only there a `\B` can know ASCII only.
use regex::bytes::{Regex, RegexBuilder};

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
        self.compiled.get(pattern).and_then(Option::as_ref).is_some_and(|regex| regex.is_match(text.as_bytes()))
    }
}

/// Compiles an expression; the error is what Go's parser says.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let told = |problem: String| format!("error parsing regexp: {problem}");
    let translated = translate::translate(pattern).map_err(told)?;
    RegexBuilder::new(&translated)
        .size_limit(SIZE_LIMIT)
        .build()
        .map_err(|_| told(format!("expression cannot be compiled: `{pattern}`")))
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
            (r"^\<a\>$", "<a>", true),
            (r"^\<a\>$", "a", false),
            (r"^[a\-z]$", "-", true),
            (r"^[a\-z]$", "m", false),
            (r"^[\d-x]$", "-", true),
            (r"^[--/]$", ".", true),
            (r"^[+--]$", ",", true),
            (r"^\101\x42\x{43}\07$", "ABC\u{7}", true),
            (r"^[\101\x{42}]+$", "AB", true),
            (r"x\By", "xy", true),
            (r"é\Bx", "éx", false),
            (r"^\p{Greek}\pL\P{Lu}$", "αbc", true),
            (r"^[\p{Greek}[:digit:]]+$", "α1", true),
            (r"^a??b*?$", "ab", true),
        ] {
            assert_eq!(compile(pattern).unwrap().is_match(text.as_bytes()), expected, "{pattern} {text}");
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
            ("^a++$", "invalid nested repetition operator: `++`"),
            ("a*?{2}b", "invalid nested repetition operator: `*?{2}`"),
            ("^[a--b]$", "invalid character class range: `a--`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
            (r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\xz", r"invalid escape sequence: `\xz`"),
            (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            ("(?P<a-b>a)", "invalid named capture: `(?P<a-b>`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            (r"[a-\d]", r"invalid escape sequence: `\d`"),
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
