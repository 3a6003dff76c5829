//! Amounts such as `10Gi`, as far as comparing them needs.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

const SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];

/// The amount in whole units, rounded up; nothing and nonsense count as zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is clamped before")]
pub(super) fn bytes(quantity: Option<&Quantity>) -> u64 {
    quantity.map_or(0, |quantity| number(&quantity.0).ceil().clamp(0.0, 1.8e19) as u64)
}

fn number(text: &str) -> f64 {
    let suffix = SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
    let (digits, factor) = suffix.unwrap_or((text, 1.0));
    digits.parse::<f64>().map_or(0.0, |value| value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        let table = [("1Gi", 1_073_741_824), ("1G", 1_000_000_000), ("1500m", 2), ("5", 5), ("1e3", 1000), ("x", 0)];
        for (text, expected) in table {
            assert_eq!(bytes(Some(&Quantity(text.into()))), expected, "{text}");
        }
        assert_eq!(bytes(None), 0);
    }
}
