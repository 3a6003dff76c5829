//! Expressions of RE2 as expressions of the `regex` crate.
//!
//! `\d`, `\w`, `\s` and `\b` know ASCII only, braces that are no repetition are plain characters, and so is any sign
//! behind a backslash, whatever the crate makes of it.

use super::class;

/// The same expression for the crate; the error is what Go's parser says.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let text = String::with_capacity(pattern.len());
    let mut translation = Translation { rest: pattern, text, groups: Vec::new(), counted: 1 };
    translation.expression(pattern)?;
    Ok(translation.text)
}

pub(super) struct Translation<'a> {
    pub rest: &'a str,
    pub text: String,
    /// Of each open group, how often the most repeated part before it in the group around is counted.
    groups: Vec<u32>,
    /// How often the most repeated part so far is counted, in the innermost group.
    counted: u32,
}

/// As often as a part may be counted, by all the counts around it together.
const MOST_COUNTED: u32 = 1000;

impl<'a> Translation<'a> {
    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn expression(&mut self, pattern: &str) -> Result<(), String> {
        // Whether something stands before, that can be repeated, and the repetition that has just ended.
        let mut repeatable = false;
        let mut repeated: Option<&str> = None;
        loop {
            let here = self.rest;
            let Some(character) = self.next() else {
                break;
            };
            let before = repeated.take();
            match character {
                '\\' => self.escape(here)?,
                '[' => class::class(self, here)?,
                '(' => {
                    self.group(here)?;
                    repeatable = false;
                    continue;
                }
                ')' => {
                    let around = self.groups.pop().ok_or_else(|| format!("unexpected ): `{pattern}`"))?;
                    self.counted = self.counted.max(around);
                    self.text.push(')');
                }
                '*' | '+' | '?' => {
                    self.repeat(here, 1, repeatable, before)?;
                    repeated = Some(before.unwrap_or(here));
                }
                '{' => match repetition(self.rest) {
                    Some(inside) => {
                        self.check_count(here, inside)?;
                        self.repeat(here, inside + 2, repeatable, before)?;
                        repeated = Some(before.unwrap_or(here));
                    }
                    None => self.text.push_str(r"\{"),
                },
                '}' => self.text.push_str(r"\}"),
                other => self.text.push(other),
            }
            repeatable = character != '|';
        }
        if self.groups.is_empty() { Ok(()) } else { Err(format!("missing closing ): `{pattern}`")) }
    }

    /// An operator that repeats what stands before it, which must not be such an operator; a `?` belongs to it.
    fn repeat(&mut self, here: &'a str, length: usize, repeatable: bool, before: Option<&str>) -> Result<(), String> {
        if !repeatable {
            return Err(format!("missing argument to repetition operator: `{}`", &here[..length]));
        }
        let length = length + usize::from(here[length..].starts_with('?'));
        let operator = &here[..length];
        self.rest = &here[length..];
        if let Some(before) = before {
            let both = &before[..before.len() - self.rest.len()];
            return Err(format!("invalid nested repetition operator: `{both}`"));
        }
        self.text.push_str(operator);
        Ok(())
    }

    /// Counts above a thousand are refused, also when it takes several to come to that.
    fn check_count(&mut self, here: &str, inside: usize) -> Result<(), String> {
        let counts = self.rest[..inside].split(',').filter(|count| !count.is_empty());
        let counts: Vec<u32> = counts.map(|count| count.parse().unwrap_or(u32::MAX)).collect();
        let ordered = counts.first() <= counts.last();
        let most = counts.iter().copied().max().unwrap_or(1);
        // What has been counted is what is counted again, if it is a group.
        let inner = if self.text.ends_with(')') { self.counted } else { 1 };
        let together = most.max(1).saturating_mul(inner);
        if ordered && together <= MOST_COUNTED {
            self.counted = self.counted.max(together);
            return Ok(());
        }
        Err(format!("invalid repeat count: `{}`", &here[..inside + 2]))
    }

    /// After `(`: a plain group, a named one or flags. Names are of no use here.
    fn group(&mut self, here: &str) -> Result<(), String> {
        self.groups.push(std::mem::replace(&mut self.counted, 1));
        self.text.push('(');
        let Some(inside) = self.rest.strip_prefix('?') else { return Ok(()) };
        if let Some(named) = inside.strip_prefix("P<").or_else(|| inside.strip_prefix('<'))
            && !named.starts_with(['=', '!'])
        {
            let Some((name, rest)) = named.split_once('>') else {
                return Err(format!("invalid named capture: `{here}`"));
            };
            let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(format!("invalid named capture: `{}`", &here[..here.len() - rest.len()]));
            }
            self.rest = rest;
            return Ok(());
        }
        let end = inside.find(|flag: char| !"imsU-".contains(flag)).unwrap_or(inside.len());
        let closes = inside[end..].starts_with(':') || (end > 0 && inside[end..].starts_with(')'));
        if closes {
            self.text.push('?');
            self.text.push_str(&inside[..end]);
            self.rest = &inside[end..];
            return Ok(());
        }
        let shown: String = here.chars().take(if inside.starts_with('<') { 4 } else { 3 + end }).collect();
        Err(format!("invalid or unsupported Perl syntax: `{shown}`"))
    }

    /// After a backslash outside of a class.
    fn escape(&mut self, here: &'a str) -> Result<(), String> {
        match self.rest.chars().next() {
            Some('b') => self.plainly(r"(?-u:\b)"),
            Some('B') => self.plainly(r"(?-u:\B)"),
            Some('A') => self.plainly(r"\A"),
            Some('z') => self.plainly(r"\z"),
            Some('Q') => {
                self.next();
                let literal = self.rest.split_once(r"\E").map_or(self.rest, |(literal, _)| literal);
                self.text.push_str(&regex::escape(literal));
                self.rest = self.rest[literal.len()..].strip_prefix(r"\E").unwrap_or_default();
            }
            _ => {
                let group = class::group(self, here)?.map(|group| format!("[{group}]"));
                let text = group.map_or_else(|| class::escaped(self, here).map(class::exactly), Ok)?;
                self.text.push_str(&text);
            }
        }
        Ok(())
    }

    fn plainly(&mut self, text: &str) {
        self.next();
        self.text.push_str(text);
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
