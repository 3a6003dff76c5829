//! Signatures of requests to AWS (Signature Version 4), over the request exactly as it is sent.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use aws_lc_rs::{digest, hmac};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, EXPECT, FORWARDED, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use time::OffsetDateTime;

use crate::middleware::grants::Key;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
/// Whoever sets it says what was signed as the body, which is ours to say.
const BODY_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// Headers that others may change on the way, or that are written after us.
const UNSIGNED: [HeaderName; 12] = [
    AUTHORIZATION,
    CONTENT_LENGTH,
    EXPECT,
    FORWARDED,
    USER_AGENT,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-amzn-trace-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// Credentials of a role, for a while.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: HeaderValue,
    /// When they end, if that is known.
    pub(super) until: Option<Instant>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Where signed requests go to.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(super) region: Arc<str>,
    pub(super) service: Arc<str>,
}

/// Signs the requests of one caller. It travels with a request to whoever sends it.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    pub(super) credentials: Arc<Credentials>,
    pub(super) scope: Scope,
    /// What the credentials were given for.
    pub(super) given_for: Key,
}

impl Signer {
    /// The same for the same caller, token and role, whatever credentials were given for them.
    pub(crate) fn given_for(&self) -> &[u8] {
        self.given_for.bytes()
    }

    /// Signs a request that is sent now.
    pub(crate) fn sign(&self, method: &Method, uri: &Uri, headers: &mut HeaderMap, body: &[u8]) {
        self.sign_at(OffsetDateTime::now_utc(), method, uri, headers, body);
    }

    fn sign_at(&self, now: OffsetDateTime, method: &Method, uri: &Uri, headers: &mut HeaderMap, body: &[u8]) {
        headers.remove(BODY_HASH);
        headers.insert(TOKEN, self.credentials.token.clone());
        let authorization = authorization(&self.credentials, &self.scope, now, method, uri, headers, body);
        if let Ok(mut authorization) = HeaderValue::from_str(&authorization) {
            authorization.set_sensitive(true);
            headers.insert(AUTHORIZATION, authorization);
        }
    }
}

/// The value of `Authorization`. The time is added to the headers, because it is signed, too.
fn authorization(
    credentials: &Credentials,
    scope: &Scope,
    now: OffsetDateTime,
    method: &Method,
    uri: &Uri,
    headers: &mut HeaderMap,
    body: &[u8],
) -> String {
    let day = format!("{:04}{:02}{:02}", now.year(), u8::from(now.month()), now.day());
    let time = format!("{day}T{:02}{:02}{:02}Z", now.hour(), now.minute(), now.second());
    // Digits and letters are always a header.
    if let Ok(value) = HeaderValue::from_str(&time) {
        headers.insert(DATE, value);
    }
    let (signed, lines) = canonical_headers(headers);
    let (path, query) = (canonical_path(uri.path()), canonical_query(uri.query().unwrap_or_default()));
    let request = format!("{method}\n{path}\n{query}\n{lines}\n{signed}\n{}", hash(body));
    let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let signable = format!("{ALGORITHM}\n{time}\n{place}\n{}", hash(request.as_bytes()));
    let first = format!("AWS4{}", credentials.secret);
    let steps = [&day, &*scope.region, &*scope.service, "aws4_request", &signable];
    let signature = steps.iter().fold(first.into_bytes(), |key, step| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), step.as_bytes()).as_ref().to_vec()
    });
    let signature = hex::encode(signature);
    format!("{ALGORITHM} Credential={}/{place}, SignedHeaders={signed}, Signature={signature}", credentials.id)
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes))
}

/// The names of the headers that are signed, and a line for each.
fn canonical_headers(headers: &HeaderMap) -> (String, String) {
    let mut names: Vec<&HeaderName> = headers.keys().filter(|name| !UNSIGNED.contains(*name)).collect();
    names.sort_by_key(|name| name.as_str());
    let mut lines = Vec::new();
    names.retain(|name| {
        let values: Result<Vec<&str>, _> = headers.get_all(*name).iter().map(HeaderValue::to_str).collect();
        // What is no text cannot be signed, and need not be.
        let Ok(values) = values else { return false };
        let values: Vec<String> =
            values.iter().map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        lines.push(format!("{name}:{}\n", values.join(",")));
        true
    });
    let names: Vec<&str> = names.into_iter().map(HeaderName::as_str).collect();
    (names.join(";"), lines.concat())
}

/// A path without detours. It is written in percent signs already, and those are written so once more.
fn canonical_path(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(escape(part.as_bytes())),
        }
    }
    let end = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

/// The parameters in order, each written in one way.
fn canonical_query(query: &str) -> String {
    let rewrite = |text: &str| escape(&unescape(text));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (rewrite(name), rewrite(value))
    };
    let mut pairs: Vec<_> = query.split('&').filter(|part| !part.is_empty()).map(pair).collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn escape(text: &[u8]) -> String {
    let escaped = text.iter().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    escaped.collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%');
        if let Some(byte) = digits.and_then(|digits| hex::decode(digits).ok()) {
            bytes.extend(byte);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}
