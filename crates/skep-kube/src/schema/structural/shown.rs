//! Definitions as messages show them: with the names and the order of the server's own structures.

use serde_json::Value;

use crate::go_text;

/// What an absent member is shown as.
enum Absent {
    Null,
    False,
    Text,
}

const MEMBERS: [(&str, &str, Absent); 43] = [
    ("ID", "id", Absent::Text),
    ("Schema", "$schema", Absent::Text),
    ("Ref", "$ref", Absent::Null),
    ("Description", "description", Absent::Text),
    ("Type", "type", Absent::Text),
    ("Nullable", "nullable", Absent::False),
    ("Format", "format", Absent::Text),
    ("Title", "title", Absent::Text),
    ("Default", "default", Absent::Null),
    ("Maximum", "maximum", Absent::Null),
    ("ExclusiveMaximum", "exclusiveMaximum", Absent::False),
    ("Minimum", "minimum", Absent::Null),
    ("ExclusiveMinimum", "exclusiveMinimum", Absent::False),
    ("MaxLength", "maxLength", Absent::Null),
    ("MinLength", "minLength", Absent::Null),
    ("Pattern", "pattern", Absent::Text),
    ("MaxItems", "maxItems", Absent::Null),
    ("MinItems", "minItems", Absent::Null),
    ("UniqueItems", "uniqueItems", Absent::False),
    ("MultipleOf", "multipleOf", Absent::Null),
    ("Enum", "enum", Absent::Null),
    ("MaxProperties", "maxProperties", Absent::Null),
    ("MinProperties", "minProperties", Absent::Null),
    ("Required", "required", Absent::Null),
    ("Items", "items", Absent::Null),
    ("AllOf", "allOf", Absent::Null),
    ("OneOf", "oneOf", Absent::Null),
    ("AnyOf", "anyOf", Absent::Null),
    ("Not", "not", Absent::Null),
    ("Properties", "properties", Absent::Null),
    ("AdditionalProperties", "additionalProperties", Absent::Null),
    ("PatternProperties", "patternProperties", Absent::Null),
    ("Dependencies", "dependencies", Absent::Null),
    ("AdditionalItems", "additionalItems", Absent::Null),
    ("Definitions", "definitions", Absent::Null),
    ("ExternalDocs", "externalDocs", Absent::Null),
    ("Example", "example", Absent::Null),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Absent::Null),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Absent::False),
    ("XIntOrString", "x-kubernetes-int-or-string", Absent::False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Absent::Null),
    ("XListType", "x-kubernetes-list-type", Absent::Null),
    ("XMapType", "x-kubernetes-map-type", Absent::Null),
];

pub(super) fn schema(schema: &Value) -> String {
    let mut members: Vec<String> = MEMBERS
        .iter()
        .map(|(shown, keyword, absent)| format!("\"{shown}\":{}", member(keyword, &schema[*keyword], absent)))
        .collect();
    let rules = schema["x-kubernetes-validations"].as_array().map_or_else(
        || "null".to_owned(),
        |rules| format!("[{}]", rules.iter().map(rule).collect::<Vec<_>>().join(",")),
    );
    members.push(format!("\"XValidations\":{rules}"));
    format!("{{{}}}", members.join(","))
}

fn member(keyword: &str, value: &Value, absent: &Absent) -> String {
    match (keyword, value) {
        (_, Value::Null) => match absent {
            Absent::Null => "null".to_owned(),
            Absent::False => "false".to_owned(),
            Absent::Text => "\"\"".to_owned(),
        },
        ("properties" | "patternProperties" | "definitions", Value::Object(members)) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, inner)| format!("{}:{}", go_text::json(&name.as_str().into()), schema(inner)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
            format!("[{}]", branches.iter().map(schema).collect::<Vec<_>>().join(","))
        }
        ("not", inner) => schema(inner),
        ("items", inner) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(inner)),
        ("additionalProperties", Value::Object(_)) => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value)),
        ("additionalProperties", flag) => format!("{{\"Allows\":{flag},\"Schema\":null}}"),
        _ => go_text::json(value),
    }
}

pub(super) fn rule(rule: &Value) -> String {
    let text = |name: &str| go_text::json(&rule[name].as_str().unwrap_or_default().into());
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        go_text::json(&rule["reason"]),
        text("fieldPath"),
        go_text::json(&rule["optionalOldSelf"]),
    )
}

/// The versions of a definition. Schemas are shown when the versions differ in them.
pub(super) fn versions(versions: &Value) -> String {
    let Some(list) = versions.as_array() else {
        return go_text::json(versions);
    };
    let common = list.windows(2).all(|pair| pair[0]["schema"] == pair[1]["schema"]);
    let shown: Vec<String> = list
        .iter()
        .map(|version| {
            let schema = match &version["schema"]["openAPIV3Schema"] {
                document if document.is_object() && !common => format!("{{\"OpenAPIV3Schema\":{}}}", schema(document)),
                _ => "null".to_owned(),
            };
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{schema},\
                 \"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                go_text::json(&version["name"].as_str().unwrap_or_default().into()),
                version["served"] == true,
                version["storage"] == true,
                version["deprecated"] == true,
                go_text::json(&version["deprecationWarning"]),
            )
        })
        .collect();
    format!("[{}]", shown.join(","))
}
