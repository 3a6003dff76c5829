//! The rules that names, labels and the like must follow, with the words the real server uses for each breach.
//!
//! Every check returns the list of complaints; an empty list means that the text is fine. One complaint becomes one
//! [`FieldError`](crate::status::FieldError).

mod address;
mod dns;
mod generate;
mod metadata;
mod parts;
mod qualified;

#[cfg(test)]
mod tests;

pub use address::{ADDRESS_FORM, RANGE_FORM, address, address_range, reachable_address};
pub use dns::{dns1035_label, dns1123_label, dns1123_search, dns1123_subdomain, wildcard_subdomain};
pub use generate::{asked_name, generate_name};
pub use metadata::{
    ANNOTATIONS_LIMIT, NameRule, finalizer_name, finalizer_warnings, validate_annotations, validate_finalizers,
    validate_known_finalizers, validate_labels, validate_object_name,
};
pub use parts::{
    PORT_RANGE, config_map_key, environment_variable_name, is_port_number, path_segment, percent, port_name,
    port_number,
};
pub use qualified::{label_key, label_value, qualified_name};

/// The complaint about a text that does not match its pattern.
fn pattern_complaint(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}'")).collect();
    format!("{rule} (e.g. {}, regex used for validation is '{pattern}')", examples.join(",  or "))
}

fn length_complaint(limit: usize, unit: &str) -> String {
    format!("must be no more than {limit} {unit}")
}

/// Whether a text begins and ends with an allowed outer byte and has only allowed bytes between.
fn framed(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => outer(*only),
        [first, middle @ .., last] => outer(*first) && outer(*last) && middle.iter().all(|byte| inner(*byte)),
    }
}
