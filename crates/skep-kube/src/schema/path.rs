//! Paths to places of an object, as messages write them.

/// Appends a member to a path: `spec` and `env` make `spec.env`.
pub(crate) fn push_member(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// Appends an item to a path: `spec.env` and 0 make `spec.env[0]`.
pub(crate) fn push_item(path: &mut String, index: usize) {
    path.push('[');
    path.push_str(&index.to_string());
    path.push(']');
}

/// The path of a member.
pub(crate) fn member(path: &str, name: &str) -> String {
    let mut path = path.to_owned();
    push_member(&mut path, name);
    path
}

/// The path of an item.
pub(crate) fn item(path: &str, index: usize) -> String {
    let mut path = path.to_owned();
    push_item(&mut path, index);
    path
}

/// The path of an entry of a map or a schema: `properties` and `spec` make `properties[spec]`.
pub(crate) fn entry(path: &str, key: &str) -> String {
    format!("{path}[{key}]")
}
