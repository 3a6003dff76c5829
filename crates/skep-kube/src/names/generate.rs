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

fn suffixed(base: &str, randomness: u128) -> String {
    let cut = (0..=BASE_LIMIT.min(base.len())).rev().find(|at| base.is_char_boundary(*at)).unwrap_or_default();
    let mut name = base[..cut].to_owned();
    // The low 62 bits of a random UUID are random; five digits to base 27 need 24 of them.
    let mut rest = randomness & u128::from(u64::MAX >> 2);
    for _ in 0..SUFFIX_LENGTH {
        let digit = usize::try_from(rest % 27).unwrap_or_default();
        name.push(char::from(ALPHABET[digit]));
        rest /= 27;
    }
    name
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
    fn names_differ() {
        let names: std::collections::BTreeSet<String> = (0..50).map(|_| generate_name("a-")).collect();
        assert!(names.len() > 45);
        assert!(names.iter().all(|name| name.len() == 7 && name[2..].bytes().all(|byte| ALPHABET.contains(&byte))));
    }
}
