//! The names of field managers.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::status::FieldError;

const NAME_LIMIT: usize = 128;
const SUBRESOURCE_LIMIT: usize = 256;

/// A character that can be printed. Of the spaces only the plain one.
static PRINTABLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$").ok());

fn is_printable(character: char) -> bool {
    let mut buffer = [0; 4];
    PRINTABLE.as_ref().is_some_and(|printable| printable.is_match(character.encode_utf8(&mut buffer)))
}

/// The manager of a request: the one that it names, or else the program that sends it.
pub fn manager_of(field_manager: &str, user_agent: &str) -> String {
    if field_manager.is_empty() { from_user_agent(user_agent) } else { field_manager.to_owned() }
}

/// The program that a User-Agent names: what stands before the first slash, as far as it can be printed and fits.
pub fn from_user_agent(user_agent: &str) -> String {
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for character in program.chars().filter(|character| is_printable(*character)) {
        if manager.len() + character.len_utf8() > NAME_LIMIT {
            break;
        }
        manager.push(character);
    }
    manager
}

/// What is wrong with the name of a manager, at a field such as `fieldManager`.
pub fn validate(field: &str, manager: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > NAME_LIMIT {
        errors.push(FieldError::too_long(field, NAME_LIMIT));
    }
    // The real server reports the first such character only, by its position in bytes.
    if let Some((position, character)) = manager.char_indices().find(|(_, character)| !is_printable(*character)) {
        let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(character));
        errors.push(FieldError::invalid(field, manager, detail));
    }
    errors
}

/// What is wrong with the options of a patch, about its manager.
pub fn validate_patch_options(is_apply: bool, force: Option<bool>, field_manager: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_apply && field_manager.is_empty() {
        errors.push(FieldError::required("fieldManager", "is required for apply patch"));
    }
    if !is_apply && force.is_some() {
        errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    errors.extend(validate("fieldManager", field_manager));
    errors
}

/// What is wrong with the managed fields that an object is about to be stored with. Entries that cannot be read are
/// never stored; names that are too long would be.
pub fn validate_managed_fields(object: &Value) -> Vec<FieldError> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut errors = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let field = |name: &str| format!("metadata.managedFields[{index}].{name}");
        errors.extend(validate(&field("manager"), entry["manager"].as_str().unwrap_or_default()));
        if entry["subresource"].as_str().unwrap_or_default().len() > SUBRESOURCE_LIMIT {
            errors.push(FieldError::too_long(field("subresource"), SUBRESOURCE_LIMIT));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_before_the_slash_is_the_manager() {
        assert_eq!(manager_of("", "kubectl/v1.36.0 (linux/amd64)"), "kubectl");
        assert_eq!(manager_of("mine", "kubectl/v1.36.0"), "mine");
        assert_eq!(from_user_agent("a b\u{7}é(x)/1/2"), "a bé(x)");
        assert_eq!(from_user_agent(&"é".repeat(100)), "é".repeat(64));
        assert_eq!(from_user_agent("/1"), "");
    }

    #[test]
    fn names_are_short_and_printable() {
        let errors = |manager: &str| -> Vec<String> {
            validate("fieldManager", manager).iter().map(ToString::to_string).collect()
        };
        assert_eq!(errors("a b"), Vec::<String>::new());
        assert_eq!(errors(&"x".repeat(129)), ["fieldManager: Too long: may not be more than 128 bytes"]);
        assert!(errors("a\tb")[0].ends_with("invalid character U+0009 (at position 1)"));
    }
}
