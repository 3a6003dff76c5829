//! The headers of a request on its way to the server, and of an answer on its way back.

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, FORWARDED, HOST, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use skep_mcp::era::Era;
use skep_mcp::header;

use super::target::Target;
use crate::forwarded;
use crate::intake::{self, JSON};
use crate::listener::Peer;
use crate::stdio::mirrors::Mirrors;

/// What is said between two neighbours only.
const BETWEEN_NEIGHBOURS: [HeaderName; 10] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Removes what is said between two neighbours only, and what one of them says is.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let is_meant = |name: &&HeaderName| BETWEEN_NEIGHBOURS.contains(name);
    let mut meant: Vec<HeaderName> = headers.keys().filter(is_meant).cloned().collect();
    if meant.contains(&CONNECTION) {
        let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        let named = values.flat_map(|value| value.split(','));
        meant.extend(named.filter_map(|name| name.trim().parse::<HeaderName>().ok()));
    }
    for name in &meant {
        headers.remove(name);
    }
}

/// The headers that the server gets for a request to `uri`. What the client says about where it came from is not believed.
pub(super) fn outgoing(mut headers: HeaderMap, uri: &Uri, target: &Target, peer: Peer, era: Option<Era>) -> HeaderMap {
    // A client of HTTP/1 says it in a header, whose value need not be copied.
    let host = match headers.get(HOST).filter(|host| host.to_str().is_ok()) {
        Some(host) => Some(host.clone()),
        None => forwarded::host(&headers, uri).and_then(|host| HeaderValue::from_str(host).ok()),
    };
    strip(&mut headers);
    for name in [CONTENT_LENGTH, FORWARDED, FORWARDED_FOR, FORWARDED_HOST, FORWARDED_PROTO] {
        headers.remove(name);
    }
    headers.insert(HOST, target.host.clone());
    if let Ok(address) = HeaderValue::from_maybe_shared(Bytes::from(peer.ip_text())) {
        headers.insert(FORWARDED_FOR, address);
    }
    if target.is_remote {
        let scheme = if target.scheme == Scheme::HTTPS { "https" } else { "http" };
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static(scheme));
    } else {
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static(peer.scheme));
        if let Some(host) = host {
            headers.insert(FORWARDED_HOST, host);
        }
    }
    match era {
        // A request that stands alone has no session.
        Some(Era::Modern) => {
            headers.remove(header::SESSION_ID);
            headers.remove(header::LAST_EVENT_ID);
        }
        // These repeat what the body says, and in this era nobody checks that.
        Some(Era::Legacy) => {
            headers.remove(header::METHOD);
            headers.remove(header::NAME);
            Mirrors::strip(&mut headers);
        }
        None => {}
    }
    headers
}

/// Says about a body what it was read as, and nothing about its letters: a server that goes by that would read another
/// message than we did.
pub(super) fn as_read(headers: &mut HeaderMap) {
    let kind = match intake::media_type(headers) {
        "" => None,
        kind if kind.eq_ignore_ascii_case(JSON) => Some(HeaderValue::from_static(JSON)),
        kind => HeaderValue::from_str(kind).ok(),
    };
    headers.remove(CONTENT_ENCODING);
    match kind {
        Some(kind) => headers.insert(CONTENT_TYPE, kind),
        None => headers.remove(CONTENT_TYPE),
    };
}

#[cfg(test)]
mod tests {
    use super::super::target::Dialect;
    use super::*;

    fn sent(target: &Target, headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        let peer = Peer { address: ([10, 0, 0, 7], 5).into(), scheme: "http" };
        outgoing(headers.collect(), &Uri::from_static("/mcp"), target, peer, Some(Era::Legacy))
    }

    #[test]
    fn the_host_of_a_client_is_told_whatever_version_of_http_it_speaks() {
        let target = Target::local(Dialect::Streamable, "http://mcp-a:8080").unwrap();
        let peer = Peer { address: ([10, 0, 0, 7], 5).into(), scheme: "https" };
        let uri = Uri::from_static("https://proxy.example:8443/mcp");
        let sent = outgoing(HeaderMap::new(), &uri, &target, peer, None);
        assert_eq!(
            (&sent["host"], &sent["x-forwarded-host"]),
            (&"mcp-a:8080".parse().unwrap(), &"proxy.example:8443".parse().unwrap())
        );
    }

    #[test]
    fn trap_25_a_server_is_told_the_type_that_a_message_was_read_by() {
        for (told, expected) in [
            (&["application/json; charset=utf-7"][..], Some("application/json")),
            (&["Application/JSON;charset=\"x\""], Some("application/json")),
            (&["text/plain; charset=utf-16"], Some("text/plain")),
            (&["application/json", "application/json; charset=utf-7"], None),
            (&["; charset=utf-7"], None),
            (&[], None),
        ] {
            let mut headers: HeaderMap =
                told.iter().map(|told| (CONTENT_TYPE, HeaderValue::from_static(told))).collect();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
            as_read(&mut headers);
            let sent: Vec<&str> = headers.values().map(|value| value.to_str().unwrap()).collect();
            assert_eq!(sent, Vec::from_iter(expected), "{told:?}");
        }
    }

    #[test]
    fn only_what_is_meant_for_the_server_reaches_it() {
        let headers = [
            ("host", "proxy.example"),
            ("connection", "x-hop, keep-alive"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("forwarded", "for=1.2.3.4"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-port", "99"),
            ("authorization", "Bearer t"),
            ("mcp-name", "allowed"),
            ("mcp-param-yard", "north"),
        ];
        let local = Target::local(Dialect::Streamable, "http://mcp-a:8080").unwrap();
        let sent_local = sent(&local, &headers);
        let text = |name: &str| sent_local.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(text("host"), Some("mcp-a:8080"));
        assert_eq!((text("x-forwarded-for"), text("x-forwarded-host")), (Some("10.0.0.7"), Some("proxy.example")));
        assert_eq!((text("x-forwarded-port"), text("authorization")), (Some("99"), Some("Bearer t")));
        for gone in ["connection", "x-hop", "te", "transfer-encoding", "forwarded", "mcp-name", "mcp-param-yard"] {
            assert_eq!(text(gone), None, "{gone}");
        }
        let remote = Target::remote(Dialect::Streamable, "https://r.example/mcp").unwrap();
        let sent_remote = sent(&remote, &headers);
        assert_eq!(
            (&sent_remote["host"], &sent_remote["x-forwarded-proto"]),
            (&"r.example".parse().unwrap(), &"https".parse().unwrap())
        );
        assert!(!sent_remote.contains_key("x-forwarded-host"));
    }
}
