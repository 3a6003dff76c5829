//! Short hashes that are safe in names and labels.

use serde_json::Value;

use crate::sorted;

/// No vowels and nothing that looks like something else, so that a hash never spells a word.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A name-safe hash of a document and of the number of collisions that it has had before.
pub(super) fn short_hash(document: &Value, collisions: Option<i32>) -> String {
    let mut hash = fnv1a(0x811c_9dc5, sorted::text(document).as_bytes());
    if let Some(collisions) = collisions {
        hash = fnv1a(hash, &collisions.to_le_bytes());
    }
    safe(hash)
}

fn fnv1a(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn safe(hash: u32) -> String {
    hash.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hashes_depend_on_content_and_collisions_only() {
        let one = json!({"a": 1, "b": [2]});
        let same = json!({"b": [2], "a": 1});
        assert_eq!(short_hash(&one, None), short_hash(&same, None));
        assert_ne!(short_hash(&one, None), short_hash(&json!({"a": 2}), None));
        assert_ne!(short_hash(&one, None), short_hash(&one, Some(1)));
    }

    #[test]
    fn hashes_are_label_values() {
        let hash = short_hash(&json!({"a": "ä"}), Some(7));
        assert!(hash.len() <= 10 && hash.bytes().all(|byte| ALPHABET.contains(&byte)), "{hash}");
    }
}
