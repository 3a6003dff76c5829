//! Numbers and texts with a check or a fixed shape: UUIDs, books, cards, base64.

/// What tells UUIDs apart.
pub(super) struct Uuid {
    pub version: char,
    pub standard_variant: bool,
}

/// Reads a UUID; each hyphen may be missing.
pub(super) fn uuid(text: &str) -> Option<Uuid> {
    let mut rest = text;
    let mut groups = Vec::new();
    for length in [8, 4, 4, 4, 12] {
        let group = rest.get(..length)?;
        if !super::is_hexadecimal(group) {
            return None;
        }
        groups.push(group);
        rest = &rest[length..];
        if groups.len() < 5 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
    }
    let standard_variant = groups[3].starts_with(['8', '9', 'a', 'b', 'A', 'B']);
    rest.is_empty().then_some(Uuid { version: groups[2].chars().next()?, standard_variant })
}

/// Base64 with padding, and not empty.
pub(super) fn is_base64(text: &str) -> bool {
    let data = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|character| !matches!(character, ' ' | '-')).collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let text = without_separators(text);
    let digits: Option<Vec<u32>> = text
        .chars()
        .enumerate()
        .map(|(place, character)| match character {
            'X' if place == 9 => Some(10),
            other => other.to_digit(10),
        })
        .collect();
    digits.is_some_and(|digits| {
        let sum: u32 = digits.iter().zip(1..).map(|(digit, place)| digit * place).sum();
        digits.len() == 10 && sum.is_multiple_of(11)
    })
}

pub(super) fn is_isbn13(text: &str) -> bool {
    digits(&without_separators(text)).is_some_and(|digits| {
        let sum: u32 = digits.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum();
        digits.len() == 13 && sum.is_multiple_of(10)
    })
}

fn digits(text: &str) -> Option<Vec<u32>> {
    // No number of interest is longer; a long text is not worth a list.
    (text.len() <= 64).then(|| text.chars().map(|character| character.to_digit(10)).collect())?
}

/// The first digits, as a range, and the lengths of the cards that begin with them.
const CARDS: [(u32, u32, &[usize]); 15] = [
    (4, 4, &[13, 16]),
    (51, 55, &[16]),
    (2221, 2720, &[16]),
    (6011, 6011, &[16]),
    (65, 65, &[16]),
    (35, 35, &[16]),
    (34, 34, &[15]),
    (37, 37, &[15]),
    (2131, 2131, &[15]),
    (1800, 1800, &[15]),
    (300, 305, &[14]),
    (36, 36, &[14]),
    (38, 38, &[14]),
    (62, 62, &[16]),
    (67, 67, &[16]),
];

pub(super) fn is_credit_card(text: &str) -> bool {
    let number: String = text.chars().filter(char::is_ascii_digit).collect();
    let Some(digits) = digits(&number) else {
        return false;
    };
    let begins = |first: u32, last: u32| {
        let length = first.to_string().len();
        number
            .get(..length)
            .and_then(|prefix| prefix.parse::<u32>().ok())
            .is_some_and(|prefix| (first..=last).contains(&prefix))
    };
    let known = CARDS.iter().any(|(first, last, lengths)| lengths.contains(&digits.len()) && begins(*first, *last));
    let checksum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| if place % 2 == 0 { *digit } else { digit * 2 / 10 + digit * 2 % 10 })
        .sum();
    known && checksum.is_multiple_of(10)
}

pub(super) fn is_social_security_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(place, byte)| match place {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}
