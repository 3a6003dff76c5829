//! docs/reference/crds.md: every kind with its fields, as `kubectl explain --recursive` would list them.

use std::fmt::Write as _;

use serde_json::Value;
use skep_api::crd;
use skep_api::kind::{Definition, GROUP, Versions};

/// The page as Markdown.
pub(super) fn page() -> String {
    let mut page = super::heading("Kinds");
    // Writing to a String cannot fail.
    let _ = writeln!(page, "All kinds belong to the API group `{GROUP}` and live in a namespace.\n");
    page.push_str("| kind | short names | versions |\n|---|---|---|\n");
    for entry in crd::ALL {
        let definition = &entry.definition;
        let short_names: Vec<String> = definition.short_names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            page,
            "| [{kind}](#{anchor}) | {} | {} |",
            short_names.join(", "),
            versions(definition),
            kind = definition.kind,
            anchor = definition.singular(),
        );
    }
    page.push('\n');
    for entry in crd::ALL {
        kind(&entry.definition, &entry.document(), &mut page);
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn versions(definition: &Definition) -> &'static str {
    match definition.versions {
        Versions::BetaAndDeprecatedAlpha => "`v1beta1`, `v1alpha1` (deprecated)",
        Versions::Deprecated(_) => "`v1beta1`, `v1alpha1` (the kind is deprecated)",
        Versions::AlphaOnly => "`v1alpha1`",
    }
}

fn kind(definition: &Definition, document: &Value, page: &mut String) {
    let schema = document.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap_or(&Value::Null);
    let _ = writeln!(page, "## {}\n\n{}\n", definition.kind, text(schema, "description"));
    for part in ["spec", "status"] {
        let part_schema = &schema["properties"][part];
        let _ = writeln!(page, "### {} {part}\n\n{}\n", definition.kind, text(part_schema, "description"));
        rules(part_schema, part, page);
        page.push_str("| field | type | meaning |\n|---|---|---|\n");
        fields(part_schema, part, page);
        page.push('\n');
    }
}

fn rules(schema: &Value, path: &str, page: &mut String) {
    let Some(rules) = schema["x-kubernetes-validations"].as_array() else {
        return;
    };
    for rule in rules {
        let _ = writeln!(page, "- `{path}`: {}", text(rule, "message"));
    }
    page.push('\n');
}

fn fields(schema: &Value, path: &str, page: &mut String) {
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array();
        for (name, property) in properties {
            let path = format!("{path}.{name}");
            let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
            field(property, &path, is_required, page);
            fields(property, &path, page);
        }
    }
    if schema["items"]["properties"].is_object() {
        fields(&schema["items"], &format!("{path}[]"), page);
    }
    if schema["additionalProperties"]["properties"].is_object() {
        fields(&schema["additionalProperties"], &format!("{path}.*"), page);
    }
}

fn field(schema: &Value, path: &str, required: bool, page: &mut String) {
    let mut meaning = cell(text(schema, "description"));
    let constraints = constraints(schema);
    if !constraints.is_empty() {
        let _ = write!(meaning, "<br>{}.", constraints.join(". "));
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let _ = write!(meaning, "<br>Rule: {}.", cell(text(rule, "message")));
    }
    let required = if required { " **required**" } else { "" };
    let _ = writeln!(page, "| `{path}`{required} | {} | {} |", type_name(schema), meaning.trim());
}

fn constraints(schema: &Value) -> Vec<String> {
    let ranges = [
        range(schema, "minimum", "maximum", ""),
        range(schema, "minLength", "maxLength", " characters"),
        range(schema, "minItems", "maxItems", " items"),
        range(schema, "minProperties", "maxProperties", " entries"),
    ];
    let mut constraints: Vec<String> = ranges.into_iter().flatten().collect();
    if let Some(pattern) = schema["pattern"].as_str() {
        constraints.push(format!("Pattern: `{}`", cell(pattern)));
    }
    // The description of a documented enum lists its values already.
    if let Some(values) = schema["enum"].as_array()
        && !text(schema, "description").contains("\n- ")
    {
        let values: Vec<String> =
            values.iter().map(|value| format!("`{}`", cell(value.as_str().unwrap_or_default()))).collect();
        constraints.push(format!("One of {}", values.join(", ")));
    }
    constraints
}

fn range(schema: &Value, least: &str, most: &str, unit: &str) -> Option<String> {
    match (schema.get(least), schema.get(most)) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("At least {least}{unit}")),
        (None, Some(most)) => Some(format!("At most {most}{unit}")),
        (None, None) => None,
    }
}

fn type_name(schema: &Value) -> String {
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", type_name(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", type_name(&schema["additionalProperties"]))
        }
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

fn text<'a>(schema: &'a Value, keyword: &str) -> &'a str {
    schema[keyword].as_str().unwrap_or_default()
}

/// Text that stays within one cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace("\n\n", "<br>").replace("\n- ", "<br>- ").replace('\n', " ")
}
