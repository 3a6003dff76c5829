//! Addresses and names of the internet, as Go's standard library reads them.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use regex::Regex;

/// An IPv4 or IPv6 address. Leading zeros in IPv4 are taken for decimal.
pub(super) fn is_address(text: &str) -> bool {
    if !text.contains(':') {
        return is_address_v4(text);
    }
    // The last part of an IPv6 address may be an IPv4 one; its value does not matter here.
    match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => {
            is_address_v4(tail) && format!("{head}:0.0.0.0").parse::<Ipv6Addr>().is_ok()
        }
        _ => text.parse::<Ipv6Addr>().is_ok(),
    }
}

fn is_address_v4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4
        && parts.into_iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && part
                    .trim_start_matches('0')
                    .parse::<u8>()
                    .map_or_else(|_| part.bytes().all(|byte| byte == b'0'), |_| true)
        })
}

/// An address and the length of a prefix.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = if address.contains(':') { 128 } else { 32 };
    is_address(address)
        && !length.is_empty()
        && length.len() <= 6
        && length.bytes().all(|byte| byte.is_ascii_digit())
        && length.parse::<u32>().is_ok_and(|length| length <= most)
}

/// The address of a network card: 6, 8 or 20 bytes, in pairs of digits, in groups of four, or without separators.
pub(super) fn is_hardware_address(text: &str) -> bool {
    let grouped = |separator: char, digits: usize, counts: [usize; 3]| {
        let groups: Vec<&str> = text.split(separator).collect();
        counts.contains(&groups.len())
            && groups.into_iter().all(|group| group.len() == digits && super::is_hexadecimal(group))
    };
    grouped(':', 2, [6, 8, 20])
        || grouped('-', 2, [6, 8, 20])
        || grouped('.', 4, [3, 4, 10])
        || (matches!(text.len(), 12 | 16 | 40) && super::is_hexadecimal(text))
}

/// A label, or several with a top-level domain of letters. Symbols and the letters of all languages count as letters.
static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let letter = r"[a-zA-Z0-9\p{S}\p{L}]";
    let single = format!("{letter}(?:-?{letter}{{0,62}})?");
    let label = format!(r"{letter}(?:[-a-zA-Z0-9\p{{S}}\p{{L}}]{{0,61}}{letter})?");
    Regex::new(&format!(r"^(?:{single}|(?:{label}\.)+[a-zA-Z\p{{L}}]{{2,63}})$")).ok()
});

pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && HOSTNAME.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// `a@b.c`, or the same in angle brackets after a name.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    match text.strip_suffix('>').and_then(|rest| rest.split_once('<')) {
        Some((name, address)) => is_phrase(name) && is_mailbox(address),
        None => is_mailbox(text),
    }
}

fn is_phrase(name: &str) -> bool {
    let name = name.trim_matches([' ', '\t']);
    is_quoted(name)
        || name
            .split([' ', '\t'])
            .filter(|word| !word.is_empty())
            .all(|word| word.chars().all(|character| is_atom(character) || character == '.'))
}

fn is_mailbox(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let literal = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    (is_quoted(local) || is_dotted(local)) && literal.map_or_else(|| is_dotted(domain), is_address)
}

fn is_quoted(text: &str) -> bool {
    let inside = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| !inside.contains(['"', '\\']) && !inside.chars().any(char::is_control))
}

/// Atoms with single dots between them.
fn is_dotted(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_atom(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character) || !character.is_ascii()
}

/// What an HTTP request may ask for: an absolute path or a URL.
pub(super) fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Ok((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let path = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !path.starts_with('/') {
        return scheme.is_some();
    }
    match path.strip_prefix("//").filter(|_| scheme.is_some()) {
        Some(after) => {
            let (authority, path) = after.find('/').map_or((after, ""), |slash| after.split_at(slash));
            is_authority(authority) && has_valid_escapes(path)
        }
        None => has_valid_escapes(path),
    }
}

/// The scheme, when there is one, and the rest.
fn split_scheme(text: &str) -> Result<(Option<&str>, &str), ()> {
    let end = text.find(|character: char| !character.is_ascii_alphanumeric() && !"+-.".contains(character));
    match end {
        Some(0) if text.starts_with(':') => Err(()),
        Some(end) if text[end..].starts_with(':') && text.starts_with(|first: char| first.is_ascii_alphabetic()) => {
            Ok((Some(&text[..end]), &text[end + 1..]))
        }
        _ => Ok((None, text)),
    }
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let user_fits =
        user.chars().all(|character| character.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(character));
    let (name, port) = if host.starts_with('[') {
        let Some(end) = host.rfind(']') else {
            return false;
        };
        host.split_at(end + 1)
    } else {
        host.rfind(':').map_or((host, ""), |colon| host.split_at(colon))
    };
    let port_fits = port.strip_prefix(':').unwrap_or(port).bytes().all(|byte| byte.is_ascii_digit())
        && (port.is_empty() || port.starts_with(':'));
    let name_fits = name.chars().all(|character| !character.is_ascii() || is_host_character(character));
    user_fits && has_valid_escapes(user) && port_fits && name_fits && has_valid_host_escapes(name)
}

fn is_host_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(character)
}

fn escapes(text: &str) -> impl Iterator<Item = Option<[u8; 2]>> + '_ {
    text.match_indices('%').map(|(start, _)| {
        let digits = text.as_bytes().get(start + 1..start + 3)?;
        digits.iter().all(u8::is_ascii_hexdigit).then(|| [digits[0], digits[1]])
    })
}

fn has_valid_escapes(text: &str) -> bool {
    escapes(text).all(|escape| escape.is_some())
}

/// In a host only the bytes of other scripts may be escaped, and the percent sign itself.
fn has_valid_host_escapes(text: &str) -> bool {
    escapes(text).all(|escape| escape.is_some_and(|digits| digits[0] >= b'8' || &digits == b"25"))
}
