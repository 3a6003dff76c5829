//! What the real server (v1.36) answered for each name.

use serde_json::{Value, json};

use super::*;
use crate::status::{ApiError, FieldError, ResourceName};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
    regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn check(rule: fn(&str) -> Vec<String>, table: &[(&str, &[&str])]) {
    for (text, complaints) in table {
        assert_eq!(&rule(text), complaints, "{text:?}");
    }
}

#[test]
fn names_of_objects() {
    let long = "a".repeat(254);
    let long_and_wrong = format!("{long}_");
    let too_long = "must be no more than 253 characters";
    check(
        dns1123_subdomain,
        &[
            ("a.b", &[]),
            ("1", &[]),
            (&long[1..], &[]),
            (&long, &[too_long]),
            (&long_and_wrong, &[too_long, SUBDOMAIN]),
            ("Upper", &[SUBDOMAIN]),
            ("a_b", &[SUBDOMAIN]),
            ("-a", &[SUBDOMAIN]),
            ("a-", &[SUBDOMAIN]),
            ("a..b", &[SUBDOMAIN]),
            (".", &[SUBDOMAIN]),
            ("é", &[SUBDOMAIN]),
            ("a/b", &[SUBDOMAIN]),
        ],
    );
}

#[test]
fn names_of_namespaces_and_services() {
    let long = "a".repeat(64);
    let dotted = format!("a.{}", "b".repeat(70));
    let too_long = "must be no more than 63 characters";
    check(
        dns1123_label,
        &[
            ("1a", &[]),
            (&long[1..], &[]),
            (&long, &[too_long]),
            ("a.b", &["must not contain dots"]),
            (&dotted, &[too_long, "must not contain dots"]),
            ("A.b", &[LABEL]),
            ("a-", &[LABEL]),
        ],
    );
    assert!(dns1035_label("a1").is_empty());
    assert_eq!(dns1035_label("1a").len(), 1);
}

#[test]
fn keys_of_labels() {
    let long = "a".repeat(64);
    let long_and_wrong = format!("{long}-");
    let long_prefix = format!("{}/b", "a".repeat(254));
    let prefixed = format!("prefix part {SUBDOMAIN}");
    let several = format!(
        "{} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        NAME_PART.replacen("name part", "a valid label key", 1)
    );
    check(
        label_key,
        &[
            ("a", &[]),
            ("x.io/y", &[]),
            ("A_b.c-D", &[]),
            ("a b", &[NAME_PART]),
            ("", &["name part must be non-empty", NAME_PART]),
            ("/a", &["prefix part must be non-empty"]),
            ("a/", &["name part must be non-empty", NAME_PART]),
            ("a/b/c", &[&several]),
            ("A/b", &[&prefixed]),
            ("-a/-b", &[&prefixed, NAME_PART]),
            (&long, &["name part must be no more than 63 bytes"]),
            (&long_and_wrong, &["name part must be no more than 63 bytes", NAME_PART]),
            (&long_prefix, &["prefix part must be no more than 253 bytes"]),
        ],
    );
    check(
        label_value,
        &[
            ("", &[]),
            ("b", &[]),
            ("-c", &[LABEL_VALUE]),
            ("b c", &[LABEL_VALUE]),
            (&long, &["must be no more than 63 bytes"]),
        ],
    );
}

#[test]
fn names_of_parts() {
    let only = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
    let letter = "must contain at least one letter (a-z)";
    let consecutive = "must not contain consecutive hyphens";
    let ends = "must not begin or end with a hyphen";
    let long = "must be no more than 15 characters";
    check(
        port_name,
        &[
            ("http", &[]),
            ("HTTP", &[only, letter]),
            ("aaaaaaaaaaaaaaaa", &[long]),
            ("80", &[letter]),
            ("a--b", &[consecutive]),
            ("-a", &[ends]),
            ("a_b", &[only]),
            ("-A--_--------------------", &[long, only, letter, consecutive, ends]),
        ],
    );
    let printable = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    check(
        environment_variable_name,
        &[
            ("A", &[]),
            ("a b", &[]),
            ("1a", &[]),
            ("..", &[]),
            ("é", &[printable]),
            ("a=b", &[printable]),
            ("\t", &[printable]),
        ],
    );
    let key = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
               (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    check(
        config_map_key,
        &[
            ("A", &[]),
            (".a", &[]),
            ("a b", &[key]),
            ("..", &["must not be '..'"]),
            ("..a", &["must not start with '..'"]),
        ],
    );
    check(
        path_segment,
        &[
            ("A:b", &[]),
            ("é b", &[]),
            (".", &["may not be '.'"]),
            ("..", &["may not be '..'"]),
            ("a/%", &["may not contain '/'", "may not contain '%'"]),
        ],
    );
    assert_eq!(port_number(65536), ["must be between 1 and 65535, inclusive"]);
    assert!(port_number(1).is_empty());
}

fn message(name: &str, errors: &[FieldError]) -> String {
    ApiError::invalid(&ResourceName::new("", "ConfigMap"), name, errors).message
}

fn map(document: &Value) -> serde_json::Map<String, Value> {
    document.as_object().cloned().unwrap()
}

#[test]
fn metadata_of_objects() {
    let name = |name: &str, generate: &str, rule| message(name, &validate_object_name(name, generate, rule));
    assert_eq!(
        name("", "", NameRule::Dns1123Subdomain),
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
    assert_eq!(
        name("foo.t8vzr", "foo.", NameRule::Dns1123Subdomain),
        format!("ConfigMap \"foo.t8vzr\" is invalid: metadata.generateName: Invalid value: \"foo.\": {SUBDOMAIN}")
    );
    // The capital letter stands where the real server looks away.
    assert_eq!(
        name("A-mj98q", "A-", NameRule::Dns1123Label),
        format!("ConfigMap \"A-mj98q\" is invalid: metadata.name: Invalid value: \"A-mj98q\": {LABEL}")
    );
    assert!(validate_object_name("foo-7sb4n", "foo-", NameRule::Dns1123Subdomain).is_empty());
    assert_eq!(validate_object_name("-v6tt4", "-", NameRule::Dns1123Subdomain).len(), 2);

    assert_eq!(
        message("x", &validate_labels(&map(&json!({ "a\u{0}\u{7f}": "é\u{200b}\t\"\\" })), "metadata.labels")),
        format!(
            "ConfigMap \"x\" is invalid: [metadata.labels: Invalid value: \"a\\x00\\x7f\": {NAME_PART}, \
             metadata.labels: Invalid value: \"é\\u200b\\t\\\"\\\\\": {LABEL_VALUE}]"
        )
    );
    assert!(validate_annotations(&map(&json!({ "UPPER.io/b": "any text\n" })), "metadata.annotations").is_empty());
    assert!(validate_annotations(&map(&json!({ "a": "x".repeat(262_143) })), "metadata.annotations").is_empty());
    assert_eq!(
        message("x", &validate_annotations(&map(&json!({ "a": "x".repeat(262_144) })), "metadata.annotations")),
        "ConfigMap \"x\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes"
    );
    let known = ["x/y", "kubernetes", "orphan"];
    assert!(validate_finalizers(&known, "metadata.finalizers").is_empty());
    assert!(validate_known_finalizers(&known, "metadata.finalizers").is_empty());
    assert!(validate_finalizers(&["x"], "metadata.finalizers").is_empty());
    assert_eq!(
        message("x", &validate_known_finalizers(&["x"], "metadata.finalizers")),
        "ConfigMap \"x\" is invalid: metadata.finalizers[0]: Invalid value: \"x\": \
         name is neither a standard finalizer name nor is it fully qualified"
    );
    assert_eq!(
        message("x", &validate_finalizers(&[""], "metadata.finalizers")),
        format!(
            "ConfigMap \"x\" is invalid: [metadata.finalizers: Invalid value: \"\": name part must be non-empty, \
             metadata.finalizers: Invalid value: \"\": {NAME_PART}]"
        )
    );
}
