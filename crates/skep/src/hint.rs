//! Errors that say what to do next.

use std::fmt::{self, Write as _};

/// The exit code of a command that found nothing running where it looked.
pub const NOTHING_RUNS: u8 = 3;

/// The exit code of a command that has started something which was not ready when it stopped waiting.
pub const NOT_YET: u8 = 4;

/// An error with advice for the person who made it.
#[derive(Debug)]
pub struct Hinted {
    problem: String,
    hints: Vec<String>,
    code: Option<u8>,
}

impl Hinted {
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), hints: Vec::new(), code: None }
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Scripts tell this error from others by an exit code of its own.
    #[must_use]
    pub fn exit_code(mut self, code: u8) -> Self {
        self.code = Some(code);
        self
    }
}

/// The exit code that an error asks for.
pub fn exit_code(error: &anyhow::Error) -> Option<u8> {
    error.chain().filter_map(|cause| cause.downcast_ref::<Hinted>()).find_map(|hinted| hinted.code)
}

impl fmt::Display for Hinted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.problem)
    }
}

impl std::error::Error for Hinted {}

/// The error as a person reads it: what went wrong, why, and the hints of every error in the chain.
pub fn report(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}\n");
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors say what their cause says.
        if !told.contains(&cause) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  caused by: {cause}");
            told = cause;
        }
    }
    for hinted in error.chain().filter_map(|cause| cause.downcast_ref::<Hinted>()) {
        for hint in &hinted.hints {
            let _ = writeln!(text, "hint: {hint}");
        }
    }
    text
}

/// The candidate closest to a misspelt word, if one is close enough to be meant.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().max(word.chars().count()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, left) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in other.iter().enumerate() {
            let substitution = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_report_names_problem_cause_and_hint() {
        let error = Err::<(), _>(Hinted::new("no such kind").hint("look at the list")).context("cannot print");
        assert_eq!(
            report(&error.unwrap_err()),
            "error: cannot print\n  caused by: no such kind\nhint: look at the list\n"
        );
    }

    #[test]
    fn a_report_says_nothing_twice() {
        let inner = std::io::Error::other("disk full");
        let error = anyhow::Error::new(inner).context("cannot write a: disk full").context("cannot start");
        assert_eq!(report(&error), "error: cannot start\n  caused by: cannot write a: disk full\n");
    }

    #[test]
    fn closest_finds_typing_mistakes_and_nothing_far_fetched() {
        let kinds = ["MCPServer", "MCPGroup", "EmbeddingServer"];
        assert_eq!(closest("mcpserv", kinds), Some("MCPServer"));
        assert_eq!(closest("MCPGruop", kinds), Some("MCPGroup"));
        assert_eq!(closest("Deployment", kinds), None);
        assert_eq!(closest("ミツバチ🐝", ["emb", "mwc"]), None);
    }
}
