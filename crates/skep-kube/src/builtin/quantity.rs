//! Quantities such as `500m` and `1536Mi`: exact numbers with a suffix, written in one canonical form.

use std::cmp::Ordering;

/// A parsed quantity: `digits × 10^-scale`, or in binary form `digits × 10^-scale × 1024^power`, folded into `nano`s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    /// The value in billionths, the finest step that quantities have.
    nanos: i128,
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// What suffixes, known or not, are made of.
const SUFFIX_LETTERS: &str = "eEinumkKMGTP";

const NANO: i128 = 1_000_000_000;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];

impl Quantity {
    /// Reads a quantity; nothing when it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    /// Reads a quantity, or says in the words of the real server why it is none. A number without digits is zero.
    pub fn read(text: &str) -> Result<Self, QuantityError> {
        let (sign, unsigned) = match text.as_bytes().first().ok_or(QuantityError::Form)? {
            b'-' => (-1, &text[1..]),
            b'+' => (1, &text[1..]),
            _ => (1, text),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let (format, exponent, factor) = suffix_of(suffix).ok_or_else(|| {
            let letters = suffix.trim_start_matches(|letter| SUFFIX_LETTERS.contains(letter));
            let (_, after) = split_digits(letters.strip_prefix(['+', '-']).unwrap_or(letters));
            if after.is_empty() { QuantityError::Suffix } else { QuantityError::Form }
        })?;
        let nanos = scaled(whole, fraction, exponent, factor);
        Ok(Self { nanos: sign * nanos, format })
    }

    /// The canonical text: the largest suffix that needs no fraction.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        match self.format {
            // Below 1024 there is no binary suffix to use, and a fraction cannot have one.
            Format::Binary if self.nanos % NANO == 0 && self.nanos.abs() >= 1024 * NANO => self.binary(),
            Format::Exponent => {
                let (mantissa, power) = self.decimal();
                if power == 0 { mantissa.to_string() } else { format!("{mantissa}e{power}") }
            }
            Format::Binary | Format::Decimal => {
                let (mantissa, power) = self.decimal();
                let suffix = DECIMAL.iter().find(|(_, exponent)| *exponent == power).map_or("", |(suffix, _)| suffix);
                format!("{mantissa}{suffix}")
            }
        }
    }

    fn binary(self) -> String {
        let mut number = self.nanos / NANO;
        let mut power = 0;
        while number % 1024 == 0 && power + 1 < BINARY.len() {
            number /= 1024;
            power += 1;
        }
        format!("{number}{}", BINARY[power])
    }

    /// A whole number and the power of ten, a multiple of three, to multiply it with.
    fn decimal(self) -> (i128, i32) {
        let mut number = self.nanos;
        let mut power = -9;
        while number % 1000 == 0 && power < 18 {
            number /= 1000;
            power += 3;
        }
        (number, power)
    }

    /// Both together, written as the first one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos), format: self.format }
    }

    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is a whole number.
    pub fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// In thousandths, rounded up: what CPU is counted in.
    pub fn milli(self) -> i128 {
        let step = NANO / 1000;
        self.nanos.div_euclid(step) + i128::from(self.nanos.rem_euclid(step) != 0)
    }

    /// In whole units, rounded up.
    pub fn value(self) -> i128 {
        self.nanos.div_euclid(NANO) + i128::from(self.nanos.rem_euclid(NANO) != 0)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.nanos.cmp(&other.nanos))
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The format of a suffix, with the power of ten and the factor it stands for.
fn suffix_of(suffix: &str) -> Option<(Format, i32, i128)> {
    if let Some(power) = BINARY.iter().skip(1).position(|known| *known == suffix) {
        let power = u32::try_from(power).ok()? + 1;
        return Some((Format::Binary, 0, 1_i128 << (10 * power)));
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((Format::Decimal, *exponent, 1));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some((Format::Exponent, exponent.parse().ok()?, 1))
}

/// `whole.fraction × 10^exponent × factor` in billionths: what is finer is rounded up, what is larger is capped.
fn scaled(whole: &str, fraction: &str, exponent: i32, factor: i128) -> i128 {
    let cap = i128::from(i64::MAX) * NANO;
    // Digits beyond these change nothing: the value is capped or rounded anyway.
    let whole = whole.trim_start_matches('0');
    if whole.len() > 30 {
        return cap;
    }
    let kept = &fraction[..fraction.len().min(25 - whole.len().min(25))];
    let lost = fraction[kept.len()..].bytes().any(|digit| digit != b'0');
    let digits = format!("0{whole}{kept}").parse::<i128>().unwrap_or(cap);
    let Some(product) = digits.checked_mul(factor) else { return cap };
    if product == 0 {
        return i128::from(lost);
    }
    let power = i64::from(exponent) + 9 - i64::try_from(kept.len()).unwrap_or(0);
    let value = if power >= 0 {
        u32::try_from(power).ok().and_then(|power| 10_i128.checked_pow(power)).and_then(|ten| product.checked_mul(ten))
    } else {
        match u32::try_from(-power).ok().and_then(|power| 10_i128.checked_pow(power)) {
            Some(ten) => Some(product / ten + i128::from(product % ten != 0 || lost)),
            None => Some(1),
        }
    };
    value.unwrap_or(cap).min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_one_canonical_form() {
        for (text, canonical) in [
            ("1", "1"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1024", "1024"),
            ("1000", "1k"),
            ("100000", "100k"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("1E3", "1e3"),
            ("0", "0"),
            ("0Gi", "0"),
            ("0.1m", "100u"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("-1", "-1"),
            ("5.", "5"),
            (".5", "500m"),
            ("0.5Mi", "512Ki"),
        ] {
            assert_eq!(Quantity::parse(text).map(Quantity::canonical).as_deref(), Some(canonical), "{text}");
        }
    }

    /// Each was tried on the real server.
    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "lots", "1x", "1.2.3", "1 Gi", "1Zi"] {
            assert_eq!(Quantity::read(text), Err(QuantityError::Form), "{text}");
        }
        for text in ["1ki", "1K", "1e", "1e+", "--1", "1Mi5", "1k3", "1ee", "1iK"] {
            assert_eq!(Quantity::read(text), Err(QuantityError::Suffix), "{text}");
        }
        for text in ["-", "+", ".", "Mi", "e5"] {
            assert!(Quantity::read(text).is_ok_and(Quantity::is_zero), "{text}");
        }
    }

    #[test]
    fn huge_numbers_are_capped() {
        let huge = "9".repeat(400);
        assert!(Quantity::parse(&huge).is_some());
        assert!(Quantity::parse("1e999999999").is_some());
        assert!(Quantity::parse(&format!("0.{}1", "0".repeat(400))).is_some());
    }
}
