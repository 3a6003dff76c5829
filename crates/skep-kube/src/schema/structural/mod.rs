//! What the real server refuses in a CustomResourceDefinition, in its words.
//!
//! Works on the document, because what is refused is often what a [`super::Schema`] leaves out.

mod change;
mod costs;
mod defaults;
mod definition;
mod formats;
mod lists;
mod names;
mod node;
mod root;
mod rules;
mod selectable;
mod shown;
mod stored;
mod versions;

pub use formats::format_warnings;
pub use stored::stored_versions;

use serde_json::Value;

use crate::status::FieldError;
use node::Findings;

/// Schemas nested deeper than this are not looked at. The server's own limit is that of its JSON reader.
const MAX_DEPTH: usize = 100;

/// Everything that is wrong with a CustomResourceDefinition, beyond what is wrong with metadata of any kind. With the
/// `old` one, what may not change has not.
pub fn check(document: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_none() {
        errors.extend(definition::check_name(document));
    }
    errors.extend(definition::check_spec(&document["spec"]));
    errors.extend(old.into_iter().flat_map(|old| change::check(document, old)));
    errors.extend(stored::check(&document["spec"], &old.unwrap_or(&Value::Null)["status"]["storedVersions"]));
    errors.extend(definition::check_approval(document, old));
    errors.extend(definition::check_preserve(&document["spec"]));
    errors
}

/// Everything that is wrong with the status of a CustomResourceDefinition.
pub fn check_status(document: &Value) -> Vec<FieldError> {
    names::check(&document["status"]["acceptedNames"], "status.acceptedNames")
}

/// Everything that is wrong with the schema of a version, which stands at `at`. `has_status` says whether the version
/// has a status subresource.
pub fn check_schema(schema: &Value, at: &str, has_status: bool) -> Vec<FieldError> {
    let mut errors = if has_status { root::check_beside_status(schema, at) } else { Vec::new() };
    errors.extend(root::check_nullable(schema, at));
    let Findings { structure, keywords } = node::check(schema, at);
    // What follows needs a schema that can be read.
    let is_readable = structure.is_empty() && keywords.is_empty() && schema["nullable"] != true;
    errors.extend(structure);
    if is_readable {
        errors.extend(defaults::check(schema, at));
        errors.extend(rules::check(schema, at));
    }
    errors.extend(keywords);
    errors
}

/// Visits every schema that holds values, with its path. Branches (`anyOf` and the like) are not visited.
fn places<'a>(schema: &'a Value, at: &str, depth: usize, visit: &mut impl FnMut(&'a Value, &str)) {
    visit(schema, at);
    if depth == MAX_DEPTH {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        places(property, &format!("{at}.properties[{name}]"), depth + 1, visit);
    }
    for keyword in ["items", "additionalProperties"] {
        if schema[keyword].is_object() {
            places(&schema[keyword], &format!("{at}.{keyword}"), depth + 1, visit);
        }
    }
}

#[cfg(test)]
mod tests;
