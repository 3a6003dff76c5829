//! Names of the parts of objects: ports, environment variables, keys of configuration; and names in paths.

use super::{length_complaint, pattern_complaint};

const PORT_NAME_LIMIT: usize = 15;
const CONFIG_KEY_LIMIT: usize = 253;

/// What a number that is no port is told.
pub const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// Names of RBAC objects: anything that is one segment of a path.
pub fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"].iter().filter(|part| text.contains(**part)).map(|part| format!("may not contain '{part}'")).collect()
}

/// The name of a container port, as IANA has it for services.
pub fn port_name(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > PORT_NAME_LIMIT {
        complaints.push(length_complaint(PORT_NAME_LIMIT, "characters"));
    }
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || !text.bytes().all(allowed) {
        complaints.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        complaints.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        complaints.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        complaints.push("must not begin or end with a hyphen".to_owned());
    }
    complaints
}

pub fn port_number(port: i64) -> Vec<String> {
    if is_port_number(port) { Vec::new() } else { vec![PORT_RANGE.to_owned()] }
}

pub fn is_port_number(port: i64) -> bool {
    (1..=65535).contains(&port)
}

/// `25%`.
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let rule = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern_complaint(rule, "[0-9]+%", &["1%", "93%"])]
}

pub fn environment_variable_name(text: &str) -> Vec<String> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=') && !text.is_empty() {
        return Vec::new();
    }
    let rule = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    vec![rule.to_owned()]
}

/// A key of a ConfigMap or Secret, which becomes a file name.
pub fn config_map_key(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > CONFIG_KEY_LIMIT {
        complaints.push(length_complaint(CONFIG_KEY_LIMIT, "characters"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(allowed) {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        complaints.push(pattern_complaint(rule, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match text {
        "." | ".." => complaints.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => complaints.push("must not start with '..'".to_owned()),
        _ => {}
    }
    complaints
}
