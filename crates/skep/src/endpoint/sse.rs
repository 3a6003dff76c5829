//! Asks an MCP server for its tools the old way: requests are posted, and answers come on one stream of events.

use std::net::SocketAddr;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::talk::{Events, Host, Pages, Silence, in_time, initialize, initialized};
use super::tools::WITH_HANDSHAKE;

/// The names of the tools at a URL, as [`super::tools::tools`].
pub(super) async fn tools(url: &str, address: Option<SocketAddr>) -> Result<Vec<String>, Silence> {
    in_time(async {
        let (host, path) = Host::of(url, address)?;
        let request = Request::builder().uri(&path).header(ACCEPT, "text/event-stream");
        let mut events = Events::new(host.send(request, Bytes::new()).await?.into_body());
        let inbox = events.find(|(name, data)| (name == "endpoint").then(|| data.clone())).await?;
        let inbox = beside(&path, &inbox);
        post(&host, &inbox, &initialize(WITH_HANDSHAKE)).await?;
        events.result(0).await?;
        post(&host, &inbox, &initialized()).await?;
        let mut pages = Pages::new(json!({}));
        while let Some((id, message)) = pages.next() {
            post(&host, &inbox, &message).await?;
            pages.take(&events.result(id).await?)?;
        }
        Ok(pages.names)
    })
    .await
}

async fn post(host: &Host, path: &str, message: &Value) -> Result<(), Silence> {
    let request = Request::builder().method(Method::POST).uri(path).header(CONTENT_TYPE, "application/json");
    host.send(request, message.to_string().into()).await.map(drop)
}

/// The path that a server names, on the same host: whole, or beside the path of the stream.
fn beside(path: &str, named: &str) -> String {
    let local = named.strip_prefix("http://").map_or(named, |rest| rest.find('/').map_or("/", |start| &rest[start..]));
    if local.starts_with('/') {
        return local.to_owned();
    }
    let folder = path.rfind('/').map_or("", |end| &path[..end]);
    format!("{folder}/{local}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inbox_is_on_the_same_host() {
        for (named, expected) in [
            ("/messages?sessionId=1", "/messages?sessionId=1"),
            ("http://elsewhere:1/messages", "/messages"),
            ("messages", "/a/messages"),
        ] {
            assert_eq!(beside("/a/sse", named), expected);
        }
    }
}
