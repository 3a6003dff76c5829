//! From a request to a connection that speaks something else.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderName, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::refusal::Refusal;

/// A connection that speaks something else than HTTP now.
pub(super) type Raw = TokioIo<Upgraded>;
pub(super) type Socket = WebSocketStream<Raw>;

/// A protocol of many streams with names.
pub(super) const SPDY: &str = "SPDY/3.1";
/// Says what they are for.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// The largest message that a client may send.
const LARGEST: usize = 4 * 1024 * 1024;

/// A connection that is about to change its protocol.
pub(super) struct Upgrade(OnUpgrade);

impl Upgrade {
    /// Answers a request for a WebSocket with the first of `protocols` that the client knows.
    pub(super) fn to_web_socket(
        request: &mut Request,
        protocols: &[&'static str],
    ) -> Result<(Self, Response), Refusal> {
        let headers = request.headers();
        let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| asks_for(headers, "websocket"));
        let key = key.ok_or_else(|| Refusal::bad_request("unable to upgrade: not a request for a WebSocket"))?;
        let accept = derive_accept_key(key.as_bytes());
        let protocol = choose(headers, &SEC_WEBSOCKET_PROTOCOL, protocols)?;
        let answer = switching("websocket").header(SEC_WEBSOCKET_ACCEPT, accept);
        finish(request, answer.header(SEC_WEBSOCKET_PROTOCOL, protocol))
    }

    /// Answers a request for SPDY.
    pub(super) fn to_spdy(request: &mut Request, protocols: &[&'static str]) -> Result<(Self, Response), Refusal> {
        let protocol = choose(request.headers(), &STREAM_PROTOCOL, protocols)?;
        finish(request, switching(SPDY).header(STREAM_PROTOCOL, protocol))
    }

    /// The connection, once the answer is out; none when the client is gone by then.
    pub(super) async fn raw(self) -> Option<Raw> {
        self.0.await.ok().map(TokioIo::new)
    }

    pub(super) async fn web_socket(self) -> Option<Socket> {
        let config = WebSocketConfig::default().max_message_size(Some(LARGEST)).max_frame_size(Some(LARGEST));
        // Whoever types wants to see each letter at once.
        let config = config.write_buffer_size(0);
        Some(WebSocketStream::from_raw_socket(self.raw().await?, Role::Server, Some(config)).await)
    }
}

/// Whether a request asks for another protocol, and for which.
pub(super) fn asks_for(headers: &HeaderMap, protocol: &str) -> bool {
    let names =
        |header: &HeaderName, wanted: &str| words(headers, header).any(|word| word.eq_ignore_ascii_case(wanted));
    names(&CONNECTION, "upgrade") && names(&UPGRADE, protocol)
}

fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

fn choose(headers: &HeaderMap, header: &HeaderName, known: &[&'static str]) -> Result<&'static str, Refusal> {
    let offered: Vec<&str> = words(headers, header).collect();
    let chosen = known.iter().find(|known| offered.contains(known));
    chosen.copied().ok_or_else(|| {
        let (offered, known) = (offered.join(" "), known.join(" "));
        let text = format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{offered}], server supports [{known}]"
        );
        Refusal::bad_request(text)
    })
}

fn switching(protocol: &str) -> http::response::Builder {
    let builder = http::Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    builder.header(CONNECTION, "Upgrade").header(UPGRADE, protocol)
}

fn finish(request: &mut Request, answer: http::response::Builder) -> Result<(Upgrade, Response), Refusal> {
    let answer = answer.body(Body::empty()).map_err(|error| Refusal::failed(error.to_string()))?;
    Ok((Upgrade(hyper::upgrade::on(request)), answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn names_are_found_in_lists_whatever_their_case() {
        let asked = headers(&[(CONNECTION, "keep-alive, Upgrade"), (UPGRADE, "WebSocket")]);
        assert!(asks_for(&asked, "websocket"));
        assert!(!asks_for(&asked, "SPDY/3.1"));
        assert!(!asks_for(&headers(&[(UPGRADE, "websocket")]), "websocket"));
    }

    #[test]
    fn the_server_prefers_its_own_order() {
        let offer = headers(&[(SEC_WEBSOCKET_PROTOCOL, "v4.channel.k8s.io, v5.channel.k8s.io")]);
        let chosen = choose(&offer, &SEC_WEBSOCKET_PROTOCOL, &["v5.channel.k8s.io", "v4.channel.k8s.io"]);
        assert_eq!(chosen, Ok("v5.channel.k8s.io"));
        assert!(choose(&offer, &SEC_WEBSOCKET_PROTOCOL, &["v3"]).unwrap_err().text.ends_with("server supports [v3]"));
    }
}
