//! What clients may keep of an answer.

use axum::body::Body;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sha2::{Digest as _, Sha256};

use super::documents::respond;

/// For everybody, until it changes.
pub const PUBLIC: &str = "public";
/// Nobody may keep it without asking again.
pub const PRIVATE: &str = "no-cache, private";

/// Forbids to keep an answer that does not say otherwise.
pub fn forbid(response: &mut Response<Body>) {
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(PRIVATE));
}

/// A document with a tag, by which a client that has it learns that it is still the same.
pub fn tagged(request: &HeaderMap, content_type: &str, body: impl Into<Bytes>, cache: &'static str) -> Response<Body> {
    let body = body.into();
    let tag = format!("\"{}\"", hex::encode_upper(Sha256::digest(&body)));
    let is_known = request.get(IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    let mut response = if is_known { Response::default() } else { respond(StatusCode::OK, content_type, body) };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    // Digits and letters between quotes are always a header.
    headers.extend(HeaderValue::try_from(tag).ok().map(|tag| (ETAG, tag)));
    response
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::header::ACCEPT;
    use tower::ServiceExt as _;

    use super::super::Server;
    use super::*;
    use crate::auth::User;
    use crate::auth::identity::Certificate;
    use crate::auth::tokens::{SigningKey, TokenAuthority};
    use crate::auth::user::MASTERS_GROUP;
    use crate::store::Store;

    #[test]
    fn who_has_a_document_is_told_that_it_is_the_same() {
        let mut request = HeaderMap::new();
        let first = tagged(&request, "application/json", "{}", PUBLIC);
        let tag = first.headers()[ETAG].clone();
        assert_eq!(
            (first.status(), &first.headers()[CACHE_CONTROL]),
            (StatusCode::OK, &HeaderValue::from_static(PUBLIC))
        );
        request.insert(IF_NONE_MATCH, tag.clone());
        let same = tagged(&request, "application/json", "{}", PUBLIC);
        assert_eq!((same.status(), &same.headers()[ETAG]), (StatusCode::NOT_MODIFIED, &tag));
        let other = tagged(&request, "application/json", "[]", PUBLIC);
        assert_eq!(other.status(), StatusCode::OK);
        assert_ne!(other.headers()[ETAG], tag);
    }

    /// As it was recorded on a real server.
    #[tokio::test]
    async fn only_what_is_found_out_at_the_beginning_may_be_kept() {
        let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
        let server = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:6443").await.unwrap();
        let all = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        for (path, accept, cache, is_tagged) in [
            ("/api/v1/secrets", "*/*", PRIVATE, false),
            ("/api/v1/namespaces/default/secrets/none", "*/*", PRIVATE, false),
            ("/livez", "*/*", PRIVATE, false),
            ("/nowhere", "*/*", PRIVATE, false),
            ("/apis", "*/*", PRIVATE, false),
            ("/apis", all, PUBLIC, true),
            ("/openapi/v2", "*/*", PRIVATE, true),
            ("/openapi/v3/apis/apps/v1", "*/*", PRIVATE, true),
            ("/openid/v1/jwks", "*/*", "public, max-age=3600", false),
        ] {
            let mut request = Request::get(path).header(ACCEPT, accept).body(Body::empty()).unwrap();
            request.extensions_mut().insert(Certificate::Good(User::new("admin", &[MASTERS_GROUP])));
            let answer = server.router().oneshot(request).await.unwrap();
            let headers = answer.headers();
            assert_eq!(headers[CACHE_CONTROL], cache, "{path} {accept}");
            assert_eq!((headers.contains_key(ETAG), headers.contains_key(VARY)), (is_tagged, is_tagged), "{path}");
        }
    }
}
