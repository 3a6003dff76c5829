//! What the server gets to see of a client, and what it gets from us.

use std::collections::BTreeMap;

use skep_proxy::middleware::{ForwardHeaders, Step};

use super::{Guarded, with_tools};
use crate::http::{Request, call};

fn forwarded(name: &str, value: &str) -> Step {
    let headers: BTreeMap<String, String> = [(name.to_owned(), value.to_owned())].into();
    Step::ForwardHeaders(ForwardHeaders::new(&headers).unwrap())
}

#[tokio::test]
async fn credentials_are_kept_from_the_server() {
    let guarded = Guarded::new(vec![Step::StripCredentials], with_tools).await;
    let request = Request::post(&call(1, "feed"))
        .header("Authorization", "Bearer t")
        .header("Cookie", "a=b")
        .header("Proxy-Authorization", "Basic x")
        .header("X-Other", "kept");
    assert_eq!(guarded.send(request).await.status, 200);
    let seen = &guarded.server.seen()[0];
    for name in ["authorization", "cookie", "proxy-authorization"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("x-other"), Some("kept"));
}

#[tokio::test]
async fn headers_of_ours_replace_those_of_a_client() {
    let guarded = Guarded::new(vec![forwarded("X-Api-Key", "ours")], with_tools).await;
    let request = Request::post(&call(1, "feed")).header("x-api-key", "theirs").header("X-API-KEY", "more");
    assert_eq!(guarded.send(request).await.status, 200);
    let seen = &guarded.server.seen()[0];
    let values: Vec<_> = seen.headers.get_all("x-api-key").iter().collect();
    assert_eq!(values, ["ours"]);
}

#[tokio::test]
async fn a_client_cannot_have_a_header_of_ours_removed() {
    let guarded = Guarded::new(vec![forwarded("X-Api-Key", "ours")], with_tools).await;
    let request = Request::post(&call(1, "feed")).header("Connection", "x-api-key");
    assert_eq!(guarded.send(request).await.status, 200);
    assert_eq!(guarded.server.seen()[0].header("x-api-key"), Some("ours"));
}
