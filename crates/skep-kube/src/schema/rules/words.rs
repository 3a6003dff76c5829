//! What the server says about texts that are not what a function of kube-cel reads.

use crate::go_text::quoted;

/// The server's words, where kube-cel has others.
pub(super) fn of(function: &str, text: &str) -> Option<String> {
    Some(match function {
        "ip" => address(text),
        "cidr" => format!("network address parse error during conversion from string: {}", network(text)),
        "quantity" => {
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned()
        }
        "asInteger" => "cannot convert value to integer".to_owned(),
        "url" => format!("URL parse error during conversion from string: {}", no_url(text)),
        "semver" => version(text)?,
        _ => return None,
    })
}

/// Why a text is no URL.
pub(super) fn no_url(text: &str) -> String {
    let why = match text.chars().next() {
        None => "empty url",
        Some(':') => "missing protocol scheme",
        Some(_) => "invalid URI for request",
    };
    format!("parse {}: {why}", quoted(text))
}

fn address(text: &str) -> String {
    let quoted = quoted(text);
    if text.contains('%') {
        return format!("IP address {quoted} with zone value is not allowed");
    }
    if is_mapped(text) {
        return format!("IPv4-mapped IPv6 address {quoted} is not allowed");
    }
    format!("IP Address {quoted} parse error during conversion from string: {}", unparsed(text))
}

fn network(text: &str) -> String {
    let refuse = |why: String| {
        format!("network address parse error during conversion from string: netip.ParsePrefix({}): {why}", quoted(text))
    };
    let Some((address, bits)) = text.rsplit_once('/') else { return refuse("no '/'".to_owned()) };
    if address.contains('%') {
        return refuse("IPv6 zones cannot be present in a prefix".to_owned());
    }
    if address.parse::<std::net::IpAddr>().is_err() {
        return refuse(unparsed(address));
    }
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || bits.len() > 3 || (bits.len() > 1 && bits.starts_with('0')) {
        return refuse(format!("bad bits after slash: {}", quoted(bits)));
    }
    if is_mapped(address) {
        return format!("IPv4-mapped IPv6 address {} is not allowed", quoted(text));
    }
    refuse("prefix length out of range".to_owned())
}

fn is_mapped(text: &str) -> bool {
    text.parse::<std::net::Ipv6Addr>().is_ok_and(|address| address.to_ipv4_mapped().is_some())
}

/// Why a text is no address.
fn unparsed(text: &str) -> String {
    let why = if text.contains(':') { None } else { Some(why_not_v4(text)) };
    format!("ParseAddr({}): {}", quoted(text), why.as_deref().unwrap_or("unable to parse IP"))
}

fn why_not_v4(text: &str) -> String {
    if !text.contains('.') {
        return "unable to parse IP".to_owned();
    }
    let mut offset = 0;
    for (index, field) in text.split('.').enumerate() {
        if let Some(odd) = field.find(|character: char| !character.is_ascii_digit()) {
            return format!("unexpected character (at {})", quoted(&text[offset + odd..]));
        }
        if index == 4 {
            return "IPv4 address too long".to_owned();
        }
        if field.is_empty() {
            return format!("IPv4 field must have at least one digit (at {})", quoted(&text[offset..]));
        }
        if field.len() > 1 && field.starts_with('0') {
            return "IPv4 field has octet with leading zero".to_owned();
        }
        if field.parse::<u8>().is_err() {
            return "IPv4 field has value >255".to_owned();
        }
        offset += field.len() + 1;
    }
    "IPv4 address too short".to_owned()
}

fn version(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("Version string empty".to_owned());
    }
    let numbers: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, patch] = numbers.as_slice() else {
        return Some("No Major.Minor.Patch elements found".to_owned());
    };
    let patch = patch.split(['-', '+']).next().unwrap_or_default();
    for (name, number) in [("Major", major), ("Minor", minor), ("Patch", &patch)] {
        if number.is_empty() || number.bytes().any(|byte| !byte.is_ascii_digit()) {
            return Some(format!("Invalid character(s) found in {} number {}", name.to_lowercase(), quoted(number)));
        }
        if number.len() > 1 && number.starts_with('0') {
            return Some(format!("{name} number must not contain leading zeroes {}", quoted(number)));
        }
    }
    text.ends_with('-').then(|| "Prerelease is empty".to_owned())
}
