//! Amounts such as `10Gi`, as far as comparing them needs.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::builtin;

/// The amount in whole units, rounded up; nothing and nonsense count as zero.
pub(super) fn bytes(quantity: Option<&Quantity>) -> u64 {
    let amount = quantity.and_then(|quantity| builtin::Quantity::parse(&quantity.0));
    amount.map_or(0, |amount| u64::try_from(amount.value().max(0)).unwrap_or(u64::MAX))
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
        assert_eq!(bytes(Some(&Quantity("-1".into()))), 0);
        assert_eq!(bytes(None), 0);
    }
}
