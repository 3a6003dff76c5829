//! Types, enumerations, lengths, patterns, formats and bounds of single values.

use serde_json::{Number, Value};

use super::super::pattern::Patterns;
use super::super::{Schema, Type};
use super::format;
use crate::go_text;
use crate::status::{FieldError, Problem};

/// Floating-point numbers beyond this are not taken for whole ones.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// The name of a value's type and of the format it has in Go.
fn nature(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Whether a value is not of the type that the schema asks for.
pub(super) fn type_(schema: &Schema, value: &Value, at: &str) -> Option<FieldError> {
    let (found, found_format) = nature(value);
    let allowed: &[&str] = match (&schema.type_, schema.int_or_string) {
        (_, true) => &["integer", "string"],
        (Some(type_), false) => &[type_.name()],
        (None, false) => return None,
    };
    let wrong = |wanted: &str, found: &str| {
        let detail = format!("{at} in body must be of type {wanted}: {}", go_text::quoted(found));
        Some(FieldError::new(at, Problem::TypeInvalid(found.into()), detail))
    };
    if value.is_null() {
        return if schema.nullable { None } else { wrong(&allowed.join(","), found) };
    }
    let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= MAX_EXACT);
    let fits = allowed.contains(&found)
        || (found == "number" && whole && allowed.contains(&"integer"))
        || (found == "integer" && allowed.contains(&"number"));
    let known_format = schema.format.as_deref().filter(|format| format::is_known(schema.type_, format));
    let textual = value.is_string() || value.is_array();
    match known_format {
        Some(format) if !fits && !textual => wrong(format, found_format),
        // A text with a format is left to the format, unless a number is wanted.
        Some(_) if textual && !allowed.contains(&"number") && !allowed.contains(&"integer") => None,
        _ if !fits => wrong(&allowed.join(","), found),
        _ => None,
    }
}

/// Whether a value is none of those that the schema lists.
pub(super) fn enumeration(schema: &Schema, value: &Value, at: &str) -> Option<FieldError> {
    let supported = schema.enum_.as_ref().filter(|supported| !supported.is_empty())?;
    if supported.iter().any(|known| alike(known, value)) {
        return None;
    }
    let shown: Vec<String> = supported
        .iter()
        .map(|known| go_text::quoted(&known.as_str().map_or_else(|| go_text::json(known), str::to_owned)))
        .collect();
    let detail = format!("supported values: {}", shown.join(", "));
    Some(FieldError::new(at, Problem::NotSupported(value.clone()), detail))
}

/// Equality by which `1` and `1.0` are the same.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

/// The first of the limits that a text breaks.
pub(super) fn text(schema: &Schema, patterns: &Patterns, text: &str, at: &str) -> Option<FieldError> {
    let length = text.chars().count() as u64;
    if let Some(most) = schema.bounds.max_length.filter(|most| length > *most) {
        return Some(FieldError::too_long(at, usize::try_from(most).unwrap_or(usize::MAX)));
    }
    if let Some(least) = schema.bounds.min_length.filter(|least| length < *least) {
        let detail = format!("{at} in body should be at least {least} chars long");
        return Some(FieldError::invalid(at, text, detail));
    }
    let pattern = schema.pattern.as_ref().filter(|pattern| !patterns.matches(pattern, text))?;
    Some(FieldError::invalid(at, text, format!("{at} in body should match '{pattern}'")))
}

/// The format that the server looks at in texts, when the schema asks for one.
pub(super) fn text_format(schema: &Schema) -> Option<&str> {
    let known = |format: &&str| schema.type_ == Some(Type::String) && format::is_known(schema.type_, format);
    schema.format.as_deref().filter(known)
}

/// Whether a text is not of a format.
pub(super) fn format(wanted: &str, text: &str, at: &str) -> Option<FieldError> {
    if format::holds(wanted, text) {
        return None;
    }
    let detail = format!("{at} in body must be of type {wanted}: {}", go_text::quoted(text));
    Some(FieldError::new(at, Problem::TypeInvalid(text.into()), detail))
}

pub(super) fn too_many(at: &str, found: u64, most: u64) -> FieldError {
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    FieldError::too_many(at, size(found), size(most))
}

/// All limits that a number breaks.
pub(super) fn number(schema: &Schema, number: &Number, at: &str) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = range(schema, number, at).into_iter().collect();
    let whole = number.as_i64();
    let float = number.as_f64().unwrap_or_default();
    let refuse = |words: String| FieldError::invalid(at, Value::Number(number.clone()), words);
    if let Some(factor) = schema.bounds.multiple_of {
        errors.extend(multiple(whole, float, factor).map(|found| match found {
            NotMultiple::Of(factor) => refuse(format!("{at} in body should be a multiple of {factor}")),
            NotMultiple::OfNothing => {
                FieldError::invalid(at, 0, format!("factor MultipleOf declared for {at} must be positive: 0"))
            }
        }));
    }
    let bounds = &schema.bounds;
    if let Some(most) = bounds.maximum.map(|most| Bound::new(whole, most)) {
        let broken = if bounds.exclusive_maximum { most.at_most(whole, float) } else { most.below(whole, float) };
        if broken {
            let words = if bounds.exclusive_maximum { "less than" } else { "less than or equal to" };
            errors.push(refuse(format!("{at} in body should be {words} {}", most.shown())));
        }
    }
    if let Some(least) = bounds.minimum.map(|least| Bound::new(whole, least)) {
        let broken = if bounds.exclusive_minimum { !least.below(whole, float) } else { !least.at_most(whole, float) };
        if broken {
            let words = if bounds.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            errors.push(refuse(format!("{at} in body should be {words} {}", least.shown())));
        }
    }
    errors
}

/// A bound as the server compares with it: cut to a whole number when the value is one.
enum Bound {
    Whole(i64),
    Float(f64),
}

impl Bound {
    #[expect(clippy::cast_possible_truncation, reason = "the server cuts the bound too")]
    fn new(whole: Option<i64>, bound: f64) -> Self {
        if whole.is_some() { Self::Whole(bound as i64) } else { Self::Float(bound) }
    }

    /// Whether the bound is below the value.
    fn below(&self, whole: Option<i64>, float: f64) -> bool {
        match self {
            Self::Whole(bound) => whole.is_some_and(|value| *bound < value),
            Self::Float(bound) => *bound < float,
        }
    }

    /// Whether the bound is the value or below it.
    fn at_most(&self, whole: Option<i64>, float: f64) -> bool {
        match self {
            Self::Whole(bound) => whole.is_some_and(|value| *bound <= value),
            Self::Float(bound) => *bound <= float,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Whole(bound) => bound.to_string(),
            Self::Float(bound) => go_text::float(*bound),
        }
    }
}

enum NotMultiple {
    Of(String),
    /// The factor is nothing once it is cut to a whole number, which the server refuses when it meets a whole value.
    OfNothing,
}

#[expect(clippy::cast_possible_truncation, reason = "the server cuts the factor too")]
fn multiple(whole: Option<i64>, float: f64, factor: f64) -> Option<NotMultiple> {
    match whole {
        Some(value) => match factor as i64 {
            ..=0 => Some(NotMultiple::OfNothing),
            factor => (value % factor != 0).then(|| NotMultiple::Of(factor.to_string())),
        },
        None if factor <= 0.0 => Some(NotMultiple::OfNothing),
        None => ((float / factor).fract() != 0.0).then(|| NotMultiple::Of(go_text::float(factor))),
    }
}

/// Whether a number is outside the range of its type.
fn range(schema: &Schema, number: &Number, at: &str) -> Option<FieldError> {
    let type_ = schema.type_.filter(|_| !schema.int_or_string)?;
    let format = schema.format.as_deref().filter(|format| format::is_known(schema.type_, format)).unwrap_or_default();
    let float = number.as_f64().unwrap_or(f64::INFINITY);
    let whole = number.as_i64().is_some() || (float.fract() == 0.0 && float.abs() <= MAX_EXACT);
    let fits = match (type_, format) {
        (Type::Integer, "int32") => whole && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float),
        (Type::Integer, _) => whole,
        (Type::Number, "float") => float.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    let named = if format.is_empty() { "(default format)".to_owned() } else { format!("with format {format}") };
    let detail = format!("Checked value must be of type {} {named} in {at}", type_.name());
    (!fits).then(|| FieldError::invalid("", "", detail))
}
