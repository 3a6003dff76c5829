//! Replaces what legitimately differs from run to run in what kubectl prints.
//!
//! | what | becomes |
//! |---|---|
//! | what looks made up anywhere: uids, tokens, times around now, the server | as in the parity suite |
//! | blanks between columns, which depend on the length of ages | two blanks |
//! | ages, alone in their column | `AGE` |
//! | hashes of templates | `HASH1`, `HASH2`, … in the order of appearance |
//! | generated ends of names | `XXXXX` |
//! | addresses, node ports, resource versions, names of events, folders of `kubectl diff` | a word each |

use std::collections::BTreeMap;

use regex::{Captures, Regex};

use crate::kube::{Texts, is_age};

/// Patterns of what a cluster makes up, and what becomes of it.
const MADE_UP: [(&str, &str); 9] = [
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "TIME"),
    (r#"(resourceVersion"?: ?"?|Resource Version: +)\d+"#, "${1}RV"),
    (r"\S*/(LIVE|MERGED)-\d+", "$1"),
    (r"\b10(\.\d{1,3}){3}\b", "IP"),
    (r"\b3[0-2]\d{3}\b", "NODEPORT"),
    (r"\.[0-9a-f]{16}\b", ".EVENT"),
    // It is there or not, depending on which changes the controller sees at once.
    (r"\bendpoints\.kubernetes\.io/last-change-trigger-time: \S+", "<none>"),
    // The name of the machine.
    (r"\bdefault-scheduler-[\w.-]+", "default-scheduler"),
];

/// A hash of a template, in a name (perhaps before a generated end) or as a label; or a generated end alone. Kubernetes
/// makes both of letters that never spell a word.
const HASH: &str = concat!(
    r#"(?<before>-|\bpod-template-hash(?:=|"?: ?"?))(?<hash>[bcdfghjklmnpqrstvwxz2456789]{7,10})"#,
    r"(?<end>-[bcdfghjklmnpqrstvwxz2456789]{5})?\b|-(?<alone>[bcdfghjklmnpqrstvwxz2456789]{5})\b"
);

/// Normalises the outputs of one script, in their order.
pub(super) struct Normaliser {
    texts: Texts,
    made_up: Vec<(Regex, &'static str)>,
    hash: Option<Regex>,
    hashes: BTreeMap<String, usize>,
}

impl Normaliser {
    pub(super) fn new() -> Self {
        // The patterns are constants; a test compiles each of them.
        let made_up = MADE_UP.iter().filter_map(|(pattern, token)| Some((Regex::new(pattern).ok()?, *token)));
        Self {
            texts: Texts::without_names(),
            made_up: made_up.collect(),
            hash: Regex::new(HASH).ok(),
            hashes: BTreeMap::new(),
        }
    }

    /// The lines of an output.
    pub(super) fn lines(&mut self, output: &str, sorted: bool) -> Vec<String> {
        let mut lines: Vec<String> = output.lines().map(|line| self.line(line)).collect();
        if sorted {
            lines.sort_by_cached_key(|line| self.hash.as_ref().map(|hash| hash.replace_all(line, "").into_owned()));
        }
        lines.iter().map(|line| self.number_hashes(line)).collect()
    }

    fn line(&mut self, line: &str) -> String {
        let mut line = self.texts.text(line);
        for (pattern, token) in &self.made_up {
            line = pattern.replace_all(&line, *token).into_owned();
        }
        in_columns(&line)
    }

    fn number_hashes(&mut self, line: &str) -> String {
        let (Some(pattern), hashes) = (&self.hash, &mut self.hashes) else {
            return line.to_owned();
        };
        let token = |found: &Captures<'_>| {
            let Some(hash) = found.name("hash") else {
                return "-XXXXX".to_owned();
            };
            let next = hashes.len() + 1;
            let number = hashes.entry(hash.as_str().to_owned()).or_insert(next);
            let end = if found.name("end").is_some() { "-XXXXX" } else { "" };
            format!("{}HASH{number}{end}", &found["before"])
        };
        pattern.replace_all(line, token).into_owned()
    }
}

/// Two blanks between columns, and no ages. The indentation stays as it is.
fn in_columns(line: &str) -> String {
    let content = line.trim_start_matches(' ');
    let indentation = &line[..line.len() - content.len()];
    let cells = content.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    let cells: Vec<&str> = cells.map(|cell| if is_age(until_blank(cell)) { "AGE" } else { cell }).collect();
    format!("{indentation}{}", cells.join("  ")).trim_end().to_owned()
}

/// `5s (x2 over 7s)` is an age, too: how often an event has been told by now is a matter of luck.
fn until_blank(cell: &str) -> &str {
    cell.split_once(" (x").map_or(cell, |(age, _)| age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_a_pattern() {
        for (pattern, _) in MADE_UP {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
        assert!(Normaliser::new().hash.is_some());
    }

    #[test]
    fn columns_and_what_is_made_up_are_evened_out() {
        let lines = Normaliser::new().lines(
            "NAME                   AGE    IP\nweb-75d9f4b7c5-x7k2p   2m5s   10.244.0.7\n  Normal  5s (x2 over 7s)  Created pod: web-75d9f4b7c5-x7k2p\nweb-6f5f4b7c5  timeout=1s\npod-template-hash=75d9f4b7c5 db-x7k2p",
            false,
        );
        let expected = [
            "NAME  AGE  IP",
            "web-HASH1-XXXXX  AGE  IP",
            "  Normal  AGE  Created pod: web-HASH1-XXXXX",
            "web-HASH2  timeout=1s",
            "pod-template-hash=HASH1 db-XXXXX",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn sorted_lines_do_not_depend_on_hashes() {
        let one = Normaliser::new().lines("web-bbbbbbbbb 2\nweb-ccccccccc 1", true);
        let other = Normaliser::new().lines("web-ccccccccc 2\nweb-bbbbbbbbb 1", true);
        assert_eq!(one, other);
        assert_eq!(one, ["web-HASH1 1", "web-HASH2 2"]);
    }
}
