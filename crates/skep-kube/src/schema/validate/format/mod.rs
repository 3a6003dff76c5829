//! The formats that the real server knows. Others it ignores.

mod color;
mod identifier;
mod internet;
mod time;

use super::super::Type;

const OF_STRINGS: [&str; 27] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether the server looks at a format at all.
pub(crate) fn is_known(type_: Option<Type>, format: &str) -> bool {
    match type_ {
        Some(Type::String) => OF_STRINGS.contains(&format),
        Some(Type::Integer) => matches!(format, "int32" | "int64"),
        Some(Type::Number) => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Whether a text has a format. Everything has a format that is not known.
pub(crate) fn holds(format: &str, text: &str) -> bool {
    match format {
        "bsonobjectid" => text.len() == 24 && is_hexadecimal(text),
        "byte" => identifier::is_base64(text),
        "cidr" => internet::is_cidr(text),
        "creditcard" => identifier::is_credit_card(text),
        "date" => time::is_date(text),
        "date-time" | "datetime" => time::is_date_time(text),
        "duration" => time::is_duration(text),
        "email" => internet::is_email(text),
        "hexcolor" => color::is_hexadecimal(text),
        "hostname" => internet::is_hostname(text),
        "ipv4" => text.contains('.') && internet::is_address(text),
        "ipv6" => text.contains(':') && internet::is_address(text),
        "isbn" => identifier::is_isbn10(text) || identifier::is_isbn13(text),
        "isbn10" => identifier::is_isbn10(text),
        "isbn13" => identifier::is_isbn13(text),
        "k8s-long-name" => text.len() <= 253 && text.split('.').all(is_name_label),
        "k8s-short-name" => text.len() <= 63 && is_name_label(text),
        "mac" => internet::is_hardware_address(text),
        "rgbcolor" => color::is_rgb(text),
        "ssn" => identifier::is_social_security_number(text),
        "uri" => internet::is_uri(text),
        "uuid" => identifier::uuid(text).is_some(),
        "uuid3" => identifier::uuid(text).is_some_and(|uuid| uuid.version == '3'),
        "uuid4" => identifier::uuid(text).is_some_and(|uuid| uuid.version == '4' && uuid.standard_variant),
        "uuid5" => identifier::uuid(text).is_some_and(|uuid| uuid.version == '5' && uuid.standard_variant),
        _ => true,
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A part of a Kubernetes name.
fn is_name_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// `measured.json` says for many texts which formats the real server finds them to have.
    #[test]
    fn formats_hold_for_what_they_hold_on_the_real_server() {
        let measured: Vec<Value> = serde_json::from_str(include_str!("measured.json")).unwrap();
        let mut differences = Vec::new();
        for entry in &measured {
            let text = entry["text"].as_str().unwrap();
            let expected: Vec<&str> = entry["formats"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            for format in OF_STRINGS.iter().filter(|format| **format != "password") {
                if holds(format, text) != expected.contains(format) {
                    differences.push(format!("{text:?} {format}: {}", holds(format, text)));
                }
            }
        }
        assert!(measured.len() > 150);
        assert!(differences.is_empty(), "{differences:#?}");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}", index in 0..OF_STRINGS.len()) {
            holds(OF_STRINGS[index], &text);
        }
    }
}
