//! Objects that break, or just do not break, one keyword of a schema at one place.

use regex::Regex;
use serde_json::{Map, Value, json};

/// An object that differs from a valid one in one place.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// The place in the schema, with `[]` and `{}` for items and map values.
    pub place: String,
    /// The place in the object, as the API server writes it: `spec.env[0].name`.
    pub field: String,
    /// The keyword that is put to the test.
    pub keyword: &'static str,
    /// Whether the object is still valid.
    pub valid: bool,
    /// The object.
    pub object: Value,
}

/// All mutations of an object under a schema, at most one of each kind per place.
pub fn of(schema: &Value, object: &Value) -> Vec<Mutation> {
    let mut walk = Walk { root: object, steps: Vec::new(), found: Vec::new() };
    walk.visit(schema, object);
    walk.found
}

#[derive(Debug, Clone)]
enum Step {
    Member(String),
    Item(usize),
    Entry(String),
}

struct Walk<'a> {
    root: &'a Value,
    steps: Vec<Step>,
    found: Vec<Mutation>,
}

/// Strings of which at least one breaks any pattern in use. Those that fit the length limits are preferred.
const MISFITS: [&str; 6] = ["!", " ", "*", "\u{7}", "ftp://example.com", ""];

impl Walk<'_> {
    fn visit(&mut self, schema: &Value, value: &Value) {
        self.scalars(schema, value);
        self.members(schema, value);
        self.items(schema, value);
    }

    fn scalars(&mut self, schema: &Value, value: &Value) {
        if schema["type"].is_string() && !self.steps.is_empty() {
            let other_type = if value.is_object() { json!("a string") } else { json!({ "an": "object" }) };
            self.breaks("type", other_type);
        }
        if schema["enum"].is_array() {
            self.breaks("enum", json!("no-such-value"));
        }
        if let Some(minimum) = schema["minimum"].as_i64() {
            self.breaks("minimum", json!(minimum - 1));
            self.keeps("minimum", json!(minimum));
        }
        if let Some(maximum) = schema["maximum"].as_i64() {
            self.breaks("maximum", json!(maximum + 1));
            self.keeps("maximum", json!(maximum));
        }
        let free = schema["pattern"].is_null() && schema["enum"].is_null() && schema["format"].is_null();
        if let Some(least) = length(schema, "minLength").filter(|least| *least > 0) {
            self.breaks("minLength", json!("x".repeat(least - 1)));
            if free {
                self.keeps("minLength", json!("x".repeat(least)));
            }
        }
        if let Some(most) = length(schema, "maxLength") {
            self.breaks("maxLength", json!("x".repeat(most + 1)));
            if free {
                self.keeps("maxLength", json!("é".repeat(most)));
            }
        }
        if let Some(misfit) = schema["pattern"].as_str().and_then(misfit) {
            self.breaks("pattern", json!(misfit));
        }
        match schema["format"].as_str() {
            Some("int32") => self.breaks("format", json!(i64::from(i32::MAX) + 1)),
            Some("date-time") => self.breaks("format", json!("yesterday")),
            Some("duration") => self.breaks("format", json!("soon")),
            Some("uri") => self.breaks("format", json!("not a uri")),
            _ => {}
        }
    }

    fn members(&mut self, schema: &Value, value: &Value) {
        let Some(members) = value.as_object() else {
            return;
        };
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            // A default takes the place of what is missing.
            if schema["properties"][name].get("default").is_none() {
                let mut rest = members.clone();
                rest.remove(name);
                self.steps.push(Step::Member(name.to_owned()));
                let (place, field) = self.names();
                self.steps.pop();
                let object = self.replaced(Value::Object(rest));
                self.push(Mutation { place, field, keyword: "required", valid: false, object });
            }
        }
        if let Some(most) = length(schema, "maxProperties")
            && let Some((_, entry)) = members.iter().next()
        {
            let entries = |count: usize| (0..count).map(|n| (format!("x-{n}"), entry.clone())).collect::<Map<_, _>>();
            self.breaks("maxProperties", Value::Object(entries(most + 1)));
            self.keeps("maxProperties", Value::Object(entries(most)));
        }
        for (name, member) in members {
            let property = &schema["properties"][name];
            if property.is_object() {
                self.step(Step::Member(name.clone()), property, member);
            } else if schema["additionalProperties"].is_object() {
                self.step(Step::Entry(name.clone()), &schema["additionalProperties"], member);
            }
        }
    }

    fn items(&mut self, schema: &Value, value: &Value) {
        let Some(items) = value.as_array() else {
            return;
        };
        if length(schema, "minItems").is_some_and(|least| least > 0) {
            self.breaks("minItems", json!([]));
        }
        if let (Some(most), Some(first)) = (length(schema, "maxItems"), items.first()) {
            self.breaks("maxItems", Value::Array(vec![first.clone(); most + 1]));
        }
        if let (Some("set" | "map"), Some(first)) = (schema["x-kubernetes-list-type"].as_str(), items.first()) {
            let twice = items.iter().chain([first]).cloned().collect();
            self.breaks("x-kubernetes-list-type", Value::Array(twice));
        }
        for (index, item) in items.iter().enumerate() {
            self.step(Step::Item(index), &schema["items"], item);
        }
    }

    fn step(&mut self, step: Step, schema: &Value, value: &Value) {
        self.steps.push(step);
        self.visit(schema, value);
        self.steps.pop();
    }

    fn breaks(&mut self, keyword: &'static str, value: Value) {
        self.mutate(keyword, value, false);
    }

    fn keeps(&mut self, keyword: &'static str, value: Value) {
        self.mutate(keyword, value, true);
    }

    fn mutate(&mut self, keyword: &'static str, value: Value, valid: bool) {
        let (place, field) = self.names();
        let object = self.replaced(value);
        self.push(Mutation { place, field, keyword, valid, object });
    }

    /// Items of a list share a place; one mutation of a kind is enough for it.
    fn push(&mut self, mutation: Mutation) {
        let known = self.found.iter().any(|known| {
            known.place == mutation.place && known.keyword == mutation.keyword && known.valid == mutation.valid
        });
        if !known {
            self.found.push(mutation);
        }
    }

    fn names(&self) -> (String, String) {
        let (mut place, mut field) = (String::new(), String::new());
        for step in &self.steps {
            match step {
                Step::Member(name) => {
                    for text in [&mut place, &mut field] {
                        if !text.is_empty() {
                            text.push('.');
                        }
                        text.push_str(name);
                    }
                }
                Step::Item(index) => {
                    place.push_str("[]");
                    field.push('[');
                    field.push_str(&index.to_string());
                    field.push(']');
                }
                Step::Entry(name) => {
                    place.push_str("{}");
                    field.push('.');
                    field.push_str(name);
                }
            }
        }
        (place, field)
    }

    /// The whole object with another value at the current place.
    fn replaced(&self, value: Value) -> Value {
        let mut object = self.root.clone();
        let mut target = &mut object;
        for step in &self.steps {
            target = match step {
                Step::Member(name) | Step::Entry(name) => &mut target[name.as_str()],
                Step::Item(index) => &mut target[*index],
            };
        }
        *target = value;
        object
    }
}

fn length(schema: &Value, keyword: &str) -> Option<usize> {
    schema[keyword].as_u64().and_then(|length| usize::try_from(length).ok())
}

fn misfit(pattern: &str) -> Option<&'static str> {
    let pattern = Regex::new(pattern).ok()?;
    MISFITS.into_iter().find(|text| !pattern.is_match(text))
}
