//! What a tool was called with, what a request had in its query, and what a resource is called, without secrets.

use std::borrow::Cow;

use serde_json::Value;
use skep_mcp::json;
use url::form_urlencoded;

use crate::middleware::subject::cut;

/// So many bytes of one value are told, and of all together.
const VALUE: usize = 100;
const ALL: usize = 200;
const MORE: &str = "...";
const REDACTED: &str = "[REDACTED]";

/// Words in names of arguments whose values are not told.
const SECRETS: [&str; 11] =
    ["password", "token", "secret", "key", "auth", "credential", "private", "pwd", "passwd", "passphrase", "signature"];
/// Names that mean a secret in the query of an address, and may mean anything elsewhere.
const SECRETS_OF_QUERIES: [&str; 2] = ["code", "sig"];

/// Arguments as `name=value, …`; nothing for what has no names.
pub(super) fn told(arguments: &str) -> Option<String> {
    let mut told = String::new();
    for (name, value) in json::members(arguments).ok()? {
        if !told.is_empty() {
            told.push_str(", ");
        }
        told.push_str(&name);
        told.push('=');
        told.push_str(&shown(&name, value));
        if told.len() > ALL {
            break;
        }
    }
    (!told.is_empty()).then(|| shortened(&told, ALL).into_owned())
}

/// A query without secrets.
pub(super) fn query(query: &str) -> String {
    let shown = query.split('&').map(|part| match form_urlencoded::parse(part.as_bytes()).next() {
        Some((name, _))
            if is_secret(&name) || SECRETS_OF_QUERIES.iter().any(|word| name.eq_ignore_ascii_case(word)) =>
        {
            let written = part.split('=').next().unwrap_or_default();
            format!("{written}={REDACTED}").into()
        }
        _ => Cow::Borrowed(part),
    });
    shown.collect::<Vec<_>>().join("&")
}

/// An address without who asks, and without secrets in its query and behind that. What is none stays as it is.
pub(in crate::middleware) fn address(text: Cow<'_, str>) -> Cow<'_, str> {
    if memchr::memchr3(b'@', b'?', b'#', text.as_bytes()).is_none() {
        return text;
    }
    let (address, fragment) = text.split_once('#').map_or((&*text, None), |(address, rest)| (address, Some(rest)));
    let (place, asked) = address.split_once('?').map_or((address, None), |(place, query)| (place, Some(query)));
    let mut told = match place.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => place.to_owned(),
    };
    for (mark, part) in [('?', asked), ('#', fragment)] {
        if let Some(part) = part {
            told.push(mark);
            told.push_str(&query(part));
        }
    }
    Cow::Owned(told)
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRETS.iter().any(|word| name.contains(word))
}

/// A value, given as JSON.
fn shown<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(name) {
        return Cow::Borrowed(REDACTED);
    }
    let whole = if value.starts_with(['{', '[']) {
        // What has members may have secret ones.
        let value: Value = serde_json::from_str(value).unwrap_or_else(|_| REDACTED.into());
        Cow::Owned(without_secrets(&value).to_string())
    } else {
        address(json::decode(value).unwrap_or(Cow::Borrowed(value)))
    };
    match whole {
        Cow::Borrowed(text) => shortened(text, VALUE),
        Cow::Owned(text) => Cow::Owned(shortened(&text, VALUE).into_owned()),
    }
}

/// What is inside of a value, with the same care.
fn without_secrets(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), if is_secret(name) { REDACTED.into() } else { without_secrets(value) }))
            .collect(),
        Value::Array(items) => items.iter().map(without_secrets).collect(),
        Value::String(text) => address(Cow::Borrowed(text)).into(),
        other => other.clone(),
    }
}

fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most { Cow::Borrowed(text) } else { Cow::Owned(format!("{}{MORE}", cut(text, most))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_told_without_secrets() {
        for (text, expected) in [
            ("x=1&y", "x=1&y"),
            ("access_token=s&x=a%20b", "access_token=[REDACTED]&x=a%20b"),
            ("x=1&%61ccess%5FTOKEN=s&api_key", "x=1&%61ccess%5FTOKEN=[REDACTED]&api_key=[REDACTED]"),
            ("code=s&barcode=1&Sig=s", "code=[REDACTED]&barcode=1&Sig=[REDACTED]"),
            ("", ""),
        ] {
            assert_eq!(query(text), expected);
        }
    }

    #[test]
    fn addresses_are_told_without_users_and_secrets() {
        for (text, expected) in [
            ("hive://1", "hive://1"),
            ("weigh_hive", "weigh_hive"),
            ("what? ann@hive", "what? ann@hive"),
            ("https://h/doc?token=s&page=2", "https://h/doc?token=[REDACTED]&page=2"),
            ("https://ann:s@h:1/a@b?x=c@d", "https://h:1/a@b?x=c@d"),
            ("https://ann:s@h", "https://h"),
            ("https://ann:s@h?code=s#access_token=s&x=1", "https://h?code=[REDACTED]#access_token=[REDACTED]&x=1"),
            ("doc?api_key=s", "doc?api_key=[REDACTED]"),
        ] {
            assert_eq!(address(text.into()), expected);
        }
    }

    #[test]
    fn arguments_are_told_without_secrets() {
        for (arguments, expected) in [
            (r#"{"hive":3,"yard":"north"}"#, Some("hive=3, yard=north")),
            (
                r#"{"API_Key":"s","x":{"password":"s","n":[1]}}"#,
                Some(r#"API_Key=[REDACTED], x={"password":"[REDACTED]","n":[1]}"#),
            ),
            (
                r#"{"pwd":"s","PassWd":"s","passphrase":"s"}"#,
                Some("pwd=[REDACTED], PassWd=[REDACTED], passphrase=[REDACTED]"),
            ),
            (
                r#"{"u":"https://a:s@h?token=s","v":["https://a:s@h"],"code":"x"}"#,
                Some(r#"u=https://h?token=[REDACTED], v=["https://h"], code=x"#),
            ),
            (r#"{"authorization":"s","b":null}"#, Some("authorization=[REDACTED], b=null")),
            ("{}", None),
            ("[1]", None),
            ("", None),
        ] {
            assert_eq!(told(arguments).as_deref(), expected, "{arguments}");
        }
        let long = format!(r#"{{"a":"{}","b":"{}","c":1}}"#, "x".repeat(150), "y".repeat(150));
        let told = told(&long).unwrap();
        assert!(told.starts_with(&format!("a={}..., b=yyy", "x".repeat(100))), "{told}");
        assert_eq!((told.len(), told.ends_with("y...")), (203, true));
    }
}
