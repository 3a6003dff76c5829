//! The address for messages that a server announces, as clients can reach it.

use bytes::Bytes;
use http::Uri;
use skep_mcp::sse::Event;

use crate::forwarded::Reached;
use crate::passing;

/// How the address that a server announces is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rewrite {
    /// Scheme and host that clients know, when something that is trusted said so.
    origin: Option<(Option<String>, String)>,
    prefix: String,
}

impl Rewrite {
    /// The change for a client that reached us so. Nothing when there is none.
    pub(super) fn new(reached: Reached, is_scheme_told: bool) -> Option<Self> {
        let origin = reached.host.map(|host| (is_scheme_told.then_some(reached.scheme), host));
        (origin.is_some() || !reached.prefix.is_empty()).then_some(Self { origin, prefix: reached.prefix })
    }

    /// An address as clients can reach it. Nothing when it is none that we understand.
    fn apply(&self, address: &str) -> Option<String> {
        let (base, fragment) = match address.split_once('#') {
            Some((base, fragment)) => (base, Some(fragment)),
            None => (address, None),
        };
        let uri: Uri = base.parse().ok()?;
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let own = uri.scheme_str().zip(uri.authority()).map(|(scheme, host)| (scheme.to_owned(), host.to_string()));
        let origin = match (&self.origin, own) {
            (Some((scheme, host)), own) => {
                let scheme = scheme.clone().or(own.map(|(scheme, _)| scheme)).unwrap_or_else(|| "http".to_owned());
                format!("{scheme}://{host}")
            }
            (None, Some((scheme, host))) => format!("{scheme}://{host}"),
            (None, None) => String::new(),
        };
        let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
        Some(format!("{origin}{}{path}{fragment}", self.prefix))
    }

    /// An event with its address changed, if it is the one that announces it.
    pub(super) fn announced(&self, event: Bytes) -> Bytes {
        let read = Event::read(&event);
        if read.name != Some(b"endpoint") {
            return event;
        }
        let address = read.data.as_deref().and_then(|data| std::str::from_utf8(data).ok());
        match address.and_then(|address| self.apply(address)) {
            Some(address) => passing::with_data(&event, address.as_bytes()),
            None => event,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(scheme: Option<&str>, host: Option<&str>, prefix: &str) -> Option<Rewrite> {
        let reached = Reached {
            scheme: scheme.unwrap_or("http").to_owned(),
            host: host.map(str::to_owned),
            prefix: prefix.to_owned(),
        };
        Rewrite::new(reached, scheme.is_some())
    }

    #[test]
    fn addresses_are_those_that_clients_can_reach() {
        let host = Some("pub.example.com");
        for (address, rewrite, expected) in [
            ("/sse?sessionId=a", rewrite(None, None, "/playwright"), "/playwright/sse?sessionId=a"),
            (
                "http://b:8080/sse?sessionId=a",
                rewrite(Some("https"), host, "/p"),
                "https://pub.example.com/p/sse?sessionId=a",
            ),
            ("http://b:8080/sse", rewrite(None, None, "/p"), "http://b:8080/p/sse"),
            ("/sse?a#f", rewrite(None, host, ""), "http://pub.example.com/sse?a#f"),
        ] {
            assert_eq!(rewrite.unwrap().apply(address).as_deref(), Some(expected), "{address}");
        }
        assert_eq!(rewrite(Some("https"), None, ""), None, "a scheme alone says nothing");
    }

    #[test]
    fn only_the_announcement_is_changed() {
        let rewrite = rewrite(None, None, "/p").unwrap();
        let changed = |text: &'static str| rewrite.announced(Bytes::from_static(text.as_bytes()));
        for (sent, expected) in [
            ("event: endpoint\r\ndata: /m\r\n\r", "event: endpoint\r\ndata: /p/m\r\n\r"),
            (
                ": first\nid: 7\nretry: 500\ndata:/m\nevent:endpoint\nx\n\n",
                ": first\nid: 7\nretry: 500\ndata: /p/m\nevent:endpoint\nx\n\n",
            ),
            ("\u{feff}data: /m\revent: endpoint\r\r", "\u{feff}data: /p/m\revent: endpoint\r\r"),
        ] {
            assert_eq!(changed(sent), expected);
        }
        for other in
            ["event: message\ndata: /m\n\n", "data: http://b/\n\n", ": endpoint\n\n", "event: endpoint\ndata: a b\n\n"]
        {
            assert_eq!(changed(other), other);
        }
    }
}
