//! The reasons of conditions: why a condition has the status it has.
//!
//! One string may serve several conditions; where kinds spell the same thing differently, both spellings are here
//! and the comment says who uses which. Whoever uses a reason writes `reasons::READY`, without the area.

pub mod readiness;
pub mod references;
pub mod validity;
pub mod virtual_mcp;

pub use readiness::*;
pub use references::*;
pub use validity::*;
pub use virtual_mcp::*;

/// Every reason, area by area.
pub const ALL: &[&[&str]] = &[readiness::ALL, references::ALL, validity::ALL, virtual_mcp::ALL];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::types;
    use super::*;

    /// `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`, what the schema of a condition demands of a reason.
    fn is_reason(text: &str) -> bool {
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        text.starts_with(|character: char| character.is_ascii_alphabetic())
            && text.ends_with(is_word)
            && text.chars().all(|character| is_word(character) || matches!(character, ',' | ':'))
    }

    /// What the schema of a condition demands of a type without a domain.
    fn is_type(text: &str) -> bool {
        text.len() <= 316
            && text.starts_with(|character: char| character.is_ascii_alphanumeric())
            && text.ends_with(|character: char| character.is_ascii_alphanumeric())
            && text.chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character))
    }

    #[test]
    fn every_reason_and_type_is_one_word_that_the_schema_accepts() {
        for text in ALL.concat().iter().chain(types::ALL) {
            assert!(is_reason(text), "{text}");
        }
        for text in types::ALL {
            assert!(is_type(text), "{text}");
        }
    }

    #[test]
    fn the_type_of_a_backend_condition_is_accepted_for_the_longest_name() {
        let longest = "b".repeat(253);
        assert_eq!(types::backend_auth_config("github"), "BackendAuthConfig-github");
        assert_eq!(types::discovered_auth_config("my.server"), "DiscoveredAuthConfig-my.server");
        assert!(is_type(&types::backend_auth_config(&longest)));
        assert!(is_type(&types::discovered_auth_config(&longest)));
    }

    #[test]
    fn no_reason_and_no_type_is_declared_twice() {
        for list in [ALL.concat(), types::ALL.to_vec()] {
            assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), list.len());
        }
    }
}
