//! What the real server refuses in a CustomResourceDefinition, in its words.
//!
//! Works on the document, because what is refused is often what a [`super::Schema`] leaves out.

mod defaults;
mod definition;
mod lists;
mod node;
mod rules;
mod shown;
mod versions;

use serde_json::Value;

use crate::status::FieldError;

/// Schemas nested deeper than this are not looked at. The server's own limit is that of its JSON reader.
const MAX_DEPTH: usize = 100;

/// Everything that is wrong with a CustomResourceDefinition.
pub fn check(document: &Value) -> Vec<FieldError> {
    let mut errors = definition::check(document);
    errors.extend(versions::check(document));
    errors
}

/// Everything that is wrong with the schema of a version, which stands at `at`. `has_status` says whether the version
/// has a status subresource.
pub fn check_schema(schema: &Value, at: &str, has_status: bool) -> Vec<FieldError> {
    let mut errors = if has_status { node::check_beside_status(schema, at) } else { Vec::new() };
    let structure = node::check(schema, at);
    // What follows needs a schema that can be read.
    if structure.is_empty() {
        errors.extend(defaults::check(schema, at));
        errors.extend(rules::check(schema, at));
    }
    errors.extend(structure);
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
