//! Checks of the metadata that every object has.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{dns1035_label, dns1123_label, dns1123_subdomain, label_value, path_segment, qualified_name};
use crate::go_text;
use crate::status::FieldError;

/// How much room all keys and values of the annotations take together, at most.
pub const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Which names a kind allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// Most kinds, custom resources among them.
    Dns1123Subdomain,
    /// Namespaces, Services, StatefulSets.
    Dns1123Label,
    Dns1035Label,
    /// The kinds of RBAC.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Dns1123Subdomain => dns1123_subdomain(name),
            Self::Dns1123Label => dns1123_label(name),
            Self::Dns1035Label => dns1035_label(name),
            Self::PathSegment => path_segment(name),
        }
    }

    /// What is wrong with the beginning of a name. A hyphen at its end is fine: more is to follow.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match prefix.strip_suffix('-') {
            // The real server puts a letter in the place of the last two characters, whatever they are.
            Some(rest) if !rest.is_empty() && self != Self::PathSegment => {
                let kept = rest.char_indices().next_back().map_or("", |(at, _)| &rest[..at]);
                self.check(&format!("{kept}a"))
            }
            _ => self.check(prefix),
        }
    }
}

/// Checks `metadata.name` and `metadata.generateName`; the name must have been generated already.
pub fn validate_object_name(name: &str, generate_name: &str, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !generate_name.is_empty() {
        for complaint in rule.check_prefix(generate_name) {
            errors.push(FieldError::invalid("metadata.generateName", generate_name, complaint));
        }
    }
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(
            rule.check(name).into_iter().map(|complaint| FieldError::invalid("metadata.name", name, complaint)),
        );
    }
    errors
}

/// Checks the keys and values of a map of labels.
pub fn validate_labels(labels: &Map<String, Value>, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        let invalid = |text: &str, complaint: String| FieldError::invalid(field, text, complaint);
        errors.extend(qualified_name(key).into_iter().map(|complaint| invalid(key, complaint)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(label_value(value).into_iter().map(|complaint| invalid(value, complaint)));
    }
    errors
}

/// Checks the keys of a map of annotations, and the size of it all.
pub fn validate_annotations(annotations: &Map<String, Value>, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations {
        // Upper-case prefixes are allowed here, and only here.
        let complaints = qualified_name(&key.to_lowercase());
        errors.extend(complaints.into_iter().map(|complaint| FieldError::invalid(field, key.as_str(), complaint)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(field, ANNOTATIONS_LIMIT));
    }
    errors
}

/// A finalizer has a domain, or is one of those that Kubernetes itself uses.
pub fn finalizer_name(finalizer: &str) -> Vec<String> {
    let mut complaints = qualified_name(finalizer);
    complaints.extend(unknown_finalizer(finalizer).map(str::to_owned));
    complaints
}

fn unknown_finalizer(finalizer: &str) -> Option<&'static str> {
    let known = finalizer.contains('/') || STANDARD_FINALIZERS.contains(&finalizer);
    (!known).then_some("name is neither a standard finalizer name nor is it fully qualified")
}

/// What is told about finalizers that are new and that somebody else might have thought of, too.
pub fn finalizer_warnings(new: &[&str], old: &[&str]) -> Vec<String> {
    let doubtful: BTreeSet<&str> =
        new.iter().copied().filter(|name| !old.contains(name) && unknown_finalizer(name).is_some()).collect();
    let warn = |name: &str| {
        let advice = if name.contains('.') { " including a path (/)" } else { "" };
        let name = go_text::quoted(name);
        format!(
            "metadata.finalizers: {name}: prefer a domain-qualified finalizer name{advice} to avoid accidental conflicts \
             with other finalizer writers"
        )
    };
    doubtful.into_iter().map(warn).collect()
}

/// Checks `metadata.finalizers` by what holds for every kind.
pub fn validate_finalizers(finalizers: &[&str], field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for finalizer in finalizers {
        let complaints = qualified_name(finalizer);
        errors.extend(complaints.into_iter().map(|complaint| FieldError::invalid(field, *finalizer, complaint)));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(field, finalizers.to_vec(), detail));
    }
    errors
}

/// Most built-in kinds take only finalizers that have a domain or are known.
pub fn validate_known_finalizers(finalizers: &[&str], field: &str) -> Vec<FieldError> {
    let complaint = |(index, finalizer): (usize, &&str)| {
        let complaint = unknown_finalizer(finalizer)?;
        Some(FieldError::invalid(format!("{field}[{index}]"), *finalizer, complaint))
    };
    finalizers.iter().enumerate().filter_map(complaint).collect()
}
