//! Amounts of resources. The API server does not say which of them it cannot read, so they are looked at before.

use k8s_openapi::api::core::v1::ResourceRequirements;

const SUFFIXES: [&str; 16] = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// What is wrong with the amounts at a place of a spec.
pub(super) fn check(place: &str, resources: &ResourceRequirements) -> Result<(), String> {
    for (list, amounts) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        for (resource, amount) in amounts.iter().flatten() {
            if !is_amount(&amount.0) {
                let amount = &amount.0;
                return Err(format!(
                    "{place}.{list}.{resource} {amount:?} is no amount; write it like 500m, 2, 1.5 or 256Mi"
                ));
            }
        }
    }
    Ok(())
}

/// A number with a suffix, or with a power of ten.
fn is_amount(text: &str) -> bool {
    let number = text.trim_start_matches(['+', '-']);
    if text.len() > number.len() + 1 {
        return false;
    }
    let end = number.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(number.len());
    let (digits, suffix) = number.split_at(end);
    let is_number = digits.contains(|letter: char| letter.is_ascii_digit()) && digits.matches('.').count() <= 1;
    let is_power = || suffix.strip_prefix(['e', 'E']).is_some_and(|power| power.parse::<i16>().is_ok());
    is_number && (SUFFIXES.contains(&suffix) || is_power())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_from_other_texts() {
        for text in ["0", "1", "500m", "1.5", ".5", "5.", "+2", "-1Gi", "1e3", "1E-3", "256Mi", "2E", "100n"] {
            assert!(is_amount(text), "{text}");
        }
        for text in ["", "lots", "1GB", "1 Gi", "--1", "1.2.3", "Mi", ".", "1e", "0x10", "1mi"] {
            assert!(!is_amount(text), "{text}");
        }
    }
}
