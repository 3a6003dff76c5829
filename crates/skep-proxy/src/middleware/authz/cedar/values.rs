//! JSON as Cedar sees it.

use cedar_policy::RestrictedExpression;
use serde_json::Value;
use skep_mcp::json;

/// How deep containers may nest. What is deeper is not there.
const DEEPEST: usize = 10;
/// Digits behind the point of a Cedar decimal.
const PLACES: i64 = 4;
const SCALE: u64 = 10_000;
/// A number of so many letters without an exponent is a decimal for sure.
const SHORT: usize = 14;
/// What follows the name of an argument that is only known to be there.
pub(super) const PRESENT: &str = "_present";
/// More digits before the point than any decimal can have.
const TOO_LONG: i64 = 20;

/// A value; nothing for what Cedar has no word for.
pub(super) fn value(value: &Value) -> Option<RestrictedExpression> {
    at_depth(value, 0)
}

fn at_depth(value: &Value, depth: usize) -> Option<RestrictedExpression> {
    match value {
        Value::Null => None,
        Value::Bool(flag) => Some(RestrictedExpression::new_bool(*flag)),
        Value::String(text) => Some(RestrictedExpression::new_string(text.clone())),
        Value::Number(number) => decimal(&number.to_string()),
        Value::Array(_) | Value::Object(_) if depth == DEEPEST => None,
        Value::Array(items) => {
            Some(RestrictedExpression::new_set(items.iter().filter_map(|item| at_depth(item, depth + 1))))
        }
        Value::Object(members) => {
            let member =
                |(name, member): (&String, &Value)| at_depth(member, depth + 1).map(|value| (name.clone(), value));
            RestrictedExpression::new_record(members.iter().filter_map(member)).ok()
        }
    }
}

/// How policies see an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// As itself.
    Plain,
    /// They know that it is there.
    Present,
}

/// How policies see an argument: itself when it is plain, else that it is there. A number beyond what a decimal can be is
/// only there, too. Nothing for a text that is none.
pub(super) fn sight(json: &str) -> Option<Sight> {
    let is_plain = match json.bytes().next()? {
        b'"' => json::decode(json).map(|_| true)?,
        b't' | b'f' => true,
        b'-' | b'0'..=b'9' => is_short(json) || scaled(json).is_some(),
        _ => false,
    };
    Some(if is_plain { Sight::Plain } else { Sight::Present })
}

/// The name and the value under which policies see an argument. Nothing for a text that is none.
pub(super) fn argument(name: &str, json: &str) -> Option<(String, RestrictedExpression)> {
    let plain = match json.bytes().next()? {
        b'"' => Some(RestrictedExpression::new_string(json::decode(json)?.into_owned())),
        b't' | b'f' => Some(RestrictedExpression::new_bool(json == "true")),
        b'-' | b'0'..=b'9' => decimal(json),
        _ => None,
    };
    Some(match plain {
        Some(value) => (format!("arg_{name}"), value),
        None => (format!("arg_{name}{PRESENT}"), RestrictedExpression::new_bool(true)),
    })
}

/// Whether a number is a decimal for sure.
fn is_short(number: &str) -> bool {
    number.len() <= SHORT && !number.contains(['e', 'E'])
}

/// A number as a decimal, rounded half away from zero; nothing when it is beyond what a decimal can be.
fn decimal(number: &str) -> Option<RestrictedExpression> {
    scaled(number).map(|scaled| {
        let (whole, rest) = (scaled.unsigned_abs() / SCALE, scaled.unsigned_abs() % SCALE);
        let sign = if scaled < 0 { "-" } else { "" };
        RestrictedExpression::new_decimal(format!("{sign}{whole}.{rest:04}"))
    })
}

/// A JSON number in ten-thousandths. Read from its digits, because binary fractions would round it first.
fn scaled(number: &str) -> Option<i64> {
    let (is_negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit.wrapping_sub(b'0')).collect();
    let Some(first) = digits.iter().position(|digit| *digit != 0) else { return Some(0) };
    let leading = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(first).ok()?)?;
    let kept = leading.checked_add(exponent.parse().ok()?)?.checked_add(PLACES)?;
    if kept > TOO_LONG {
        return None;
    }
    let Ok(kept) = usize::try_from(kept) else { return Some(0) };
    let digit = |place: usize| i128::from(digits.get(first + place).copied().unwrap_or(0));
    let rounding = i128::from(digit(kept) >= 5);
    let sum = (0..kept).fold(0, |sum, place| sum * 10 + digit(place)) + rounding;
    i64::try_from(if is_negative { -sum } else { sum }).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_rounded_half_away_from_zero_at_four_digits() {
        for (number, expected) in [
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("1", Some(10_000)),
            ("1.00005", Some(10_001)),
            ("-1.00005", Some(-10_001)),
            ("1.00004999", Some(10_000)),
            ("12e-1", Some(12_000)),
            ("1.5E+2", Some(1_500_000)),
            ("0.00005", Some(1)),
            ("4e-5", Some(0)),
            ("9.99995", Some(100_000)),
            ("1e-400", Some(0)),
            ("922337203685477.5807", Some(i64::MAX)),
            ("-922337203685477.5808", Some(i64::MIN)),
            ("922337203685477.5808", None),
            ("1e15", None),
            ("1e99999999999999999999", None),
            ("0e99999999999999999999", Some(0)),
        ] {
            assert_eq!(scaled(number), expected, "{number}");
        }
    }

    #[test]
    fn what_cedar_has_no_word_for_is_left_out() {
        assert!(value(&Value::Null).is_none());
        let kept = value(&json!({"a": null, "b": [1e300, "c"], "d": {"e": false}})).unwrap();
        assert_eq!(kept, value(&json!({"b": ["c"], "d": {"e": false}})).unwrap());
    }

    #[test]
    fn trap_50_deep_claims_are_cut_off() {
        let mut deep = json!("end");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let mut cut = json!([]);
        for _ in 1..DEEPEST {
            cut = json!([cut]);
        }
        assert_eq!(value(&deep), value(&cut));
    }

    #[test]
    fn arguments_that_are_not_plain_are_only_known_to_be_there() {
        let named = |json| {
            let name = argument("x", json).map(|(name, _)| name);
            let expected = sight(json).map(|sight| if sight == Sight::Plain { "arg_x" } else { "arg_x_present" });
            assert_eq!(name.as_deref(), expected, "{json}");
            name
        };
        assert_eq!(named(r#""text""#).as_deref(), Some("arg_x"));
        assert_eq!(named("-1.5e3").as_deref(), Some("arg_x"));
        assert_eq!(named("null").as_deref(), Some("arg_x_present"));
        assert_eq!(named("[1]").as_deref(), Some("arg_x_present"));
        assert_eq!(named("1763238000000000").as_deref(), Some("arg_x_present"));
        assert_eq!(named("1e99").as_deref(), Some("arg_x_present"));
        assert_eq!(named(r#""\ud800""#), None);
    }
}
