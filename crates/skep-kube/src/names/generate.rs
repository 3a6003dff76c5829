//! Names that the server makes from `generateName`.

/// Neither vowels nor characters that look alike: no words, no misreadings.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: u32 = 5;
/// What is left of 63 characters, the length of a DNS label.
const BASE_LIMIT: usize = 58;

/// The base, cut where needed, and five random characters.
pub fn generate_name(base: &str) -> String {
    suffixed(base, uuid::Uuid::new_v4().as_u128())
}

/// What there is room for before the suffix.
fn cut(base: &str) -> &str {
    &base[..base.floor_char_boundary(BASE_LIMIT)]
}

fn suffixed(base: &str, randomness: u128) -> String {
    let mut name = cut(base).to_owned();
    // The low 62 bits of a random UUID are random; five digits to base 27 need 24 of them.
    let mut rest = randomness & u128::from(u64::MAX >> 2);
    for _ in 0..SUFFIX_LENGTH {
        let digit = usize::try_from(rest % 27).unwrap_or_default();
        name.push(char::from(ALPHABET[digit]));
        rest /= 27;
    }
    name
}

/// The name that an object was asked to have: its own, or no more than the base when the server has made it.
pub fn asked_name<'a>(name: &'a str, base: &'a str) -> &'a str {
    let suffix = name.strip_prefix(cut(base)).unwrap_or_default();
    let is_made = !base.is_empty()
        && u32::try_from(suffix.len()) == Ok(SUFFIX_LENGTH)
        && suffix.bytes().all(|byte| ALPHABET.contains(&byte));
    if is_made { base } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_cut_to_58_bytes() {
        assert_eq!(suffixed(&"x".repeat(300), 0), format!("{}bbbbb", "x".repeat(58)));
        assert_eq!(suffixed("web-", 26 + 27 * 25), "web-98bbb");
        // 57 letters and a two-byte one: the cut must not fall inside it.
        assert_eq!(suffixed(&format!("{}é", "x".repeat(57)), 0), format!("{}bbbbb", "x".repeat(57)));
    }

    #[test]
    fn what_was_asked_for_is_told_from_what_was_made() {
        for (name, base, asked) in [
            (generate_name("a-"), "a-", "a-"),
            (generate_name(&"x".repeat(70)), &*"x".repeat(70), &*"x".repeat(70)),
            ("db-0".to_owned(), "db-", "db-0"),
            ("db-10301".to_owned(), "db-", "db-10301"),
            ("other".to_owned(), "", "other"),
        ] {
            assert_eq!(asked_name(&name, base), asked);
        }
    }

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<String> = (0..50).map(|_| generate_name("a-")).collect();
        assert!(names.len() > 45);
        assert!(names.iter().all(|name| name.len() == 7 && name[2..].bytes().all(|byte| ALPHABET.contains(&byte))));
    }
}
