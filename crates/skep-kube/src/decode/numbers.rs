//! Numbers as Go reads them.

use serde_json::{Number, Value};

use super::DecodeError;

/// What becomes of a whole number that is written like a fraction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// `1.0` is a floating-point number, which shows in messages.
    AsWritten,
    /// `1.0` is 1.
    AsStored,
}

/// The largest number up to which every whole number is a floating-point number too.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// Whole numbers are whole however they are written. The server does the same when it stores them; until then it takes
/// `1.0` for a floating-point number, which shows in a set that holds `1` and `1.0`, and in how errors print it.
pub(super) fn number(text: &str, numbers: Numbers) -> Result<Value, DecodeError> {
    let float: f64 = text.parse().unwrap_or(f64::INFINITY);
    if let Some(whole) = whole(float).filter(|_| numbers == Numbers::AsStored) {
        return Ok(whole.into());
    }
    Number::from_f64(float).map(Value::Number).ok_or_else(|| DecodeError::NumberOutOfRange(text.to_owned()))
}

/// The whole number that a floating-point number is.
#[expect(clippy::cast_possible_truncation, reason = "checked to be a whole number in range")]
pub(crate) fn whole(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && float.abs() <= MAX_EXACT).then_some(float as i64)
}
