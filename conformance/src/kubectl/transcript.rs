//! What kubectl printed, as a text that people read: each command after a prompt, and its output below.

use std::fmt;
use std::path::PathBuf;
use std::{fs, io};

const PROMPT: &str = "$ kubectl ";

/// Why a golden transcript cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    #[error("no golden transcript {}: {source}; UPDATE_GOLDEN=1 writes it", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// The commands of a script and what they printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    pub script: String,
    pub entries: Vec<Entry>,
}

/// One command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    pub command: String,
    /// Standard output, then the lines of standard error marked `! `, then the exit code unless it is 0.
    pub output: Vec<String>,
}

/// A step in which two transcripts differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub script: String,
    /// Counted from 1.
    pub step: usize,
    pub command: String,
    pub real: Vec<String>,
    pub ours: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "## {} {}: kubectl {}", self.script, self.step, self.command)?;
        let alike = |left: &[String], right: &[String]| left.iter().zip(right).take_while(|(a, b)| a == b).count();
        let start = alike(&self.real, &self.ours);
        let turned = |lines: &[String]| lines[start..].iter().rev().cloned().collect::<Vec<_>>();
        let end = alike(&turned(&self.real), &turned(&self.ours));
        let differing = |lines: &[String]| lines[start..lines.len() - end].to_vec();
        for (mark, lines) in [("real", differing(&self.real)), ("ours", differing(&self.ours))] {
            for line in lines {
                write!(formatter, "\n  {mark} | {line}")?;
            }
        }
        Ok(())
    }
}

/// The steps in which two transcripts differ. A transcript that ends early differs once.
pub fn compare(real: &Transcript, ours: &Transcript) -> Vec<Difference> {
    let nothing = Entry::default();
    let mut differences = Vec::new();
    for step in 0..real.entries.len().max(ours.entries.len()) {
        let (real_entry, our_entry) = (real.entries.get(step), ours.entries.get(step));
        if real_entry != our_entry {
            let (left, right) = (real_entry.unwrap_or(&nothing), our_entry.unwrap_or(&nothing));
            differences.push(Difference {
                script: real.script.clone(),
                step: step + 1,
                command: real_entry.or(our_entry).map(|entry| entry.command.clone()).unwrap_or_default(),
                real: left.output.clone(),
                ours: right.output.clone(),
            });
        }
        if real_entry.is_none() || our_entry.is_none() {
            break;
        }
    }
    differences
}

fn path_of(script: &str) -> PathBuf {
    super::folder().join("golden").join(format!("{script}.txt"))
}

/// What kubectl printed on the real cluster.
pub fn golden(script: &str) -> Result<Transcript, TranscriptError> {
    let path = path_of(script);
    let text = fs::read_to_string(&path).map_err(|source| TranscriptError::Read { path, source })?;
    Ok(parsed(script, &text))
}

/// Writes down what kubectl printed on the real cluster.
pub fn write_golden(transcript: &Transcript) -> Result<(), TranscriptError> {
    let path = path_of(&transcript.script);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, printed(transcript)));
    written.map_err(|source| TranscriptError::Write { path, source })
}

fn printed(transcript: &Transcript) -> String {
    let mut text = String::new();
    for Entry { command, output } in &transcript.entries {
        text.extend([PROMPT, command, "\n"]);
        text.extend(output.iter().flat_map(|line| [line.as_str(), "\n"]));
    }
    text
}

fn parsed(script: &str, text: &str) -> Transcript {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix(PROMPT), entries.last_mut()) {
            (Some(command), _) => entries.push(Entry { command: command.to_owned(), output: Vec::new() }),
            (None, Some(entry)) => entry.output.push(line.to_owned()),
            (None, None) => {}
        }
    }
    Transcript { script: script.to_owned(), entries }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(outputs: &[&[&str]]) -> Transcript {
        let entry = |output: &&[&str]| Entry {
            command: "get x".into(),
            output: output.iter().map(|line| (*line).to_owned()).collect(),
        };
        Transcript { script: "s".into(), entries: outputs.iter().map(entry).collect() }
    }

    #[test]
    fn what_is_printed_is_the_same_transcript() {
        let original = transcript(&[&["a", "", "  b"], &[], &["! c", "[exit 1]"]]);
        assert_eq!(parsed("s", &printed(&original)), original);
    }

    #[test]
    fn a_difference_shows_the_lines_that_differ() {
        let found = compare(&transcript(&[&["a"], &["a", "b", "c"]]), &transcript(&[&["a"], &["a", "x", "y", "c"]]));
        let [difference] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(difference.to_string(), "## s 2: kubectl get x\n  real | b\n  ours | x\n  ours | y");
    }

    #[test]
    fn an_early_end_is_one_difference() {
        assert_eq!(compare(&transcript(&[&[], &[], &[]]), &transcript(&[&[]])).len(), 1);
    }
}
