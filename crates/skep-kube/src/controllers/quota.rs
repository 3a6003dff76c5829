//! Numbers of pods that may be given as a percentage.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a fraction of a pod goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rounding {
    Up,
    Down,
}

/// The number that a count or a percentage of `total` stands for; never negative. The API server has checked the
/// text, so anything else counts as nothing.
pub(super) fn resolve(value: &IntOrString, total: i32, rounding: Rounding) -> i32 {
    match value {
        IntOrString::Int(count) => (*count).max(0),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%').and_then(|digits| digits.parse().ok()).unwrap_or(0);
            let product = percent.max(0).saturating_mul(i64::from(total.max(0)));
            let rounded = match rounding {
                Rounding::Up => product.saturating_add(99) / 100,
                Rounding::Down => product / 100,
            };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_asked() {
        let table = [
            ("25%", 10, 3, 2),
            ("25%", 4, 1, 1),
            ("25%", 1, 1, 0),
            ("0%", 10, 0, 0),
            ("100%", 7, 7, 7),
            ("x", 7, 0, 0),
            ("-5%", 7, 0, 0),
        ];
        for (text, total, up, down) in table {
            let value = IntOrString::String(text.into());
            assert_eq!(resolve(&value, total, Rounding::Up), up, "{text} of {total}, up");
            assert_eq!(resolve(&value, total, Rounding::Down), down, "{text} of {total}, down");
        }
        assert_eq!(resolve(&IntOrString::Int(3), 10, Rounding::Up), 3);
        assert_eq!(resolve(&IntOrString::Int(-3), 10, Rounding::Up), 0);
    }
}
