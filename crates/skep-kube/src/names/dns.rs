//! Names that must fit into DNS.

use super::{framed, length_complaint, pattern_complaint};

const LABEL_LIMIT: usize = 63;
const SUBDOMAIN_LIMIT: usize = 253;

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_PATTERN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SEARCH_PATTERN: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const WILDCARD_PATTERN: &str = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035_PATTERN: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";

const fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    framed(text, alphanumeric, |byte| alphanumeric(byte) || byte == b'-')
}

pub(super) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

pub(super) fn subdomain_complaint() -> String {
    let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                and must start and end with an alphanumeric character";
    pattern_complaint(rule, SUBDOMAIN_PATTERN, &["example.com"])
}

/// Names of most objects: `my.name-1`.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > SUBDOMAIN_LIMIT {
        complaints.push(length_complaint(SUBDOMAIN_LIMIT, "characters"));
    }
    if !is_subdomain(text) {
        complaints.push(subdomain_complaint());
    }
    complaints
}

/// Names of namespaces, services, containers and volumes: a subdomain without dots.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_LIMIT {
        complaints.push(length_complaint(LABEL_LIMIT, "characters"));
    }
    if !is_label(text) {
        // A text whose only fault is its dots is told so; the pattern would not help its author.
        complaints.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                        and must start and end with an alphanumeric character";
            pattern_complaint(rule, LABEL_PATTERN, &["my-name", "123-abc"])
        });
    }
    complaints
}

/// A label that also begins with a letter.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_LIMIT {
        complaints.push(length_complaint(LABEL_LIMIT, "characters"));
    }
    if !is_label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                    start with an alphabetic character, and end with an alphanumeric character";
        complaints.push(pattern_complaint(rule, LABEL_1035_PATTERN, &["my-name", "abc-123"]));
    }
    complaints
}

/// A domain that resolvers search; its labels may hold underscores.
pub fn dns1123_search(text: &str) -> Vec<String> {
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        framed(label, alphanumeric, |byte| alphanumeric(byte) || matches!(byte, b'-' | b'_'))
    };
    let mut complaints = Vec::new();
    if text.len() > SUBDOMAIN_LIMIT {
        complaints.push(length_complaint(SUBDOMAIN_LIMIT, "characters"));
    }
    if !text.split('.').all(is_label) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', \
                    and must start and end with an alphanumeric character";
        complaints.push(pattern_complaint(rule, SEARCH_PATTERN, &["example.com"]));
    }
    complaints
}

/// Every host of a domain: `*.example.com`.
pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > SUBDOMAIN_LIMIT {
        complaints.push(length_complaint(SUBDOMAIN_LIMIT, "characters"));
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        let rule = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                    consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        complaints.push(pattern_complaint(rule, WILDCARD_PATTERN, &["*.example.com"]));
    }
    complaints
}
