//! Label keys and values, and the qualified names that annotations and finalizers share with them.

use super::dns::{is_subdomain, subdomain_complaint};
use super::{framed, length_complaint, pattern_complaint};

const NAME_LIMIT: usize = 63;
const PREFIX_LIMIT: usize = 253;
const VALUE_LIMIT: usize = 63;

const NAME_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', \
                         and must start and end with an alphanumeric character";
const NAME_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

fn is_name(text: &str) -> bool {
    framed(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
    )
}

/// A name with an optional DNS prefix: `example.com/MyName`.
///
/// The server calls it a label key whatever it is used for.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            check_prefix(prefix, &mut complaints);
            name
        }
        _ => {
            let rule = pattern_complaint(&format!("a valid label key {NAME_RULE}"), NAME_PATTERN, &NAME_EXAMPLES);
            return vec![format!("{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")];
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_LIMIT {
        complaints.push(format!("name part {}", length_complaint(NAME_LIMIT, "bytes")));
    }
    if !is_name(name) {
        complaints.push(pattern_complaint(&format!("name part {NAME_RULE}"), NAME_PATTERN, &NAME_EXAMPLES));
    }
    complaints
}

fn check_prefix(prefix: &str, complaints: &mut Vec<String>) {
    if prefix.is_empty() {
        complaints.push("prefix part must be non-empty".to_owned());
        return;
    }
    if prefix.len() > PREFIX_LIMIT {
        complaints.push(format!("prefix part {}", length_complaint(PREFIX_LIMIT, "bytes")));
    }
    if !is_subdomain(prefix) {
        complaints.push(format!("prefix part {}", subdomain_complaint()));
    }
}

pub fn label_key(text: &str) -> Vec<String> {
    qualified_name(text)
}

/// The value of a label; it may be empty.
pub fn label_value(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > VALUE_LIMIT {
        complaints.push(length_complaint(VALUE_LIMIT, "bytes"));
    }
    if !text.is_empty() && !is_name(text) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                    and must start and end with an alphanumeric character";
        let pattern = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
        complaints.push(pattern_complaint(rule, pattern, &["MyValue", "my_value", "12345"]));
    }
    complaints
}
