//! What browsers are told about pages from elsewhere. Only origins that were named are told anything.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::answer::{self, Answer};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
/// What a page may read besides what it always may.
const EXPOSED: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
/// How long a browser may remember, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("86400");
/// The headers that a page may send.
const HEADERS: [&str; 9] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "traceparent",
];
/// Headers that repeat arguments begin with this.
const ARGUMENTS: &str = "mcp-param-";

/// The answer to the question whether a page of that origin may send a request. Nothing when that is not the question.
pub(crate) fn preflight(method: &Method, headers: &HeaderMap, origin: &HeaderValue) -> Option<Answer> {
    if method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let asked = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|names| names.to_str().ok());
    let asked = asked.flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
    let is_argument = |name: &String| name.strip_prefix(ARGUMENTS).is_some_and(|rest| !rest.is_empty());
    let allowed: Vec<String> = HEADERS.map(str::to_owned).into_iter().chain(asked.filter(is_argument)).collect();
    let mut answer = answer::empty(StatusCode::NO_CONTENT);
    let told = answer.headers_mut();
    told.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    told.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Ok(allowed) = HeaderValue::from_str(&allowed.join(", ")) {
        told.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    expose(&mut answer, origin);
    Some(answer)
}

/// Lets a page of that origin read an answer.
pub(crate) fn expose(answer: &mut Answer, origin: &HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_name(ORIGIN));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &Method, headers: &[(http::HeaderName, &'static str)]) -> Option<Answer> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        preflight(method, &headers, &HeaderValue::from_static("https://hive.example"))
    }

    #[test]
    fn a_browser_is_told_what_a_page_may_send() {
        let post = (ACCESS_CONTROL_REQUEST_METHOD, "POST");
        let names = (ACCESS_CONTROL_REQUEST_HEADERS, "Content-Type, X-Evil, Mcp-Param-Yard,mcp-param-");
        let answer = asked(&Method::OPTIONS, &[post.clone(), names]).unwrap();
        assert_eq!(answer.status(), 204);
        let told = |name: http::HeaderName| answer.headers()[name].to_str().unwrap();
        assert_eq!(told(ACCESS_CONTROL_ALLOW_ORIGIN), "https://hive.example");
        let allowed = told(ACCESS_CONTROL_ALLOW_HEADERS);
        assert!(allowed.contains("mcp-session-id") && allowed.ends_with(", mcp-param-yard"), "{allowed}");
        assert!(!allowed.contains("evil"), "{allowed}");
        assert!(asked(&Method::OPTIONS, &[]).is_none() && asked(&Method::POST, &[post]).is_none());
    }
}
