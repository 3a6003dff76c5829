//! What every request passes before it is looked at: who may talk to the server, and how many at once.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{HOST, ORIGIN, RETRY_AFTER};
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri};
use tokio::sync::OwnedSemaphorePermit;

use super::Server;
use super::refusal::Refusal;

/// The right to one exchange, kept for as long as it lasts.
pub(super) type Permit = Arc<OwnedSemaphorePermit>;

pub(super) async fn guard(State(server): State<Server>, mut request: Request, next: Next) -> Response {
    if !is_trusted(request.headers(), server.is_local) {
        return Refusal::transport(StatusCode::FORBIDDEN, "Host or Origin is not allowed").into_response();
    }
    let Ok(permit) = Arc::clone(&server.exchanges).try_acquire_owned() else {
        let refusal = Refusal::transport(StatusCode::SERVICE_UNAVAILABLE, "too many requests at the same time");
        return ([(RETRY_AFTER, "1")], refusal).into_response();
    };
    request.extensions_mut().insert(Permit::new(permit));
    next.run(request).await
}

/// A web page may not talk to the server, except one of this machine; and a name that was made to point at this
/// machine is none of its names. A server that others are meant to reach has names that it does not know.
fn is_trusted(headers: &HeaderMap, is_local: bool) -> bool {
    let text = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
    let is_own_host = |host: &str| host.parse().is_ok_and(|authority: Authority| is_loopback(authority.host()));
    let is_own_origin = |origin: &str| {
        origin.parse().is_ok_and(|origin: Uri| origin.host().is_some_and(is_loopback) && origin.scheme().is_some())
    };
    (!is_local || text(HOST).all(is_own_host)) && text(ORIGIN).all(is_own_origin)
}

fn is_loopback(host: &str) -> bool {
    // An address is no name that somebody could have made to point here.
    let is_address = host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback());
    is_address || matches!(host, "localhost" | "[::1]")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn other_hosts_and_origins_are_refused() {
        for (host, origin, is_local, expected) in [
            ("127.0.0.1:8080", None, true, true),
            ("localhost", Some("http://localhost:3000"), true, true),
            ("[::1]:8080", Some("http://[::1]:8080"), true, true),
            ("127.96.0.9:8080", None, true, true),
            ("evil.example", None, true, false),
            ("localhost.evil.example", None, true, false),
            ("localhost", Some("http://evil.example"), true, false),
            ("localhost", Some("null"), true, false),
            ("demo.default.svc:8080", None, false, true),
            ("demo.default.svc:8080", Some("http://demo.default.svc:8080"), false, false),
        ] {
            let mut headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(is_trusted(&headers, is_local), expected, "{host} {origin:?} {is_local}");
        }
    }
}
