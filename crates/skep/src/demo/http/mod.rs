//! The HTTP transports.

mod guard;
mod headers;
mod refusal;
mod sse;
mod stateless;
mod streamable;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures::{Stream, StreamExt as _};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use self::guard::Permit;
use super::sessions::Sessions;
use super::{Demo, limits};

/// How HTTP is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpTransport {
    /// One endpoint, `/mcp`.
    Streamable,
    /// A stream at `/sse` and messages to the address that it names.
    Sse,
}

/// What the handlers share.
#[derive(Debug, Clone)]
struct Server {
    demo: Arc<Demo>,
    sessions: Arc<Sessions>,
    exchanges: Arc<Semaphore>,
    /// Whether only this machine can reach the server.
    is_local: bool,
}

pub(crate) async fn serve(demo: &Arc<Demo>, transport: HttpTransport, listener: TcpListener) -> io::Result<()> {
    let server = Server {
        demo: Arc::clone(demo),
        sessions: Arc::default(),
        exchanges: Arc::new(Semaphore::new(limits::EXCHANGES)),
        is_local: listener.local_addr()?.ip().is_loopback(),
    };
    demo.spawn(Arc::clone(&server.sessions).sweep(demo.stop.clone()));
    let router = match transport {
        HttpTransport::Streamable => {
            Router::new().route("/mcp", post(streamable::post).get(streamable::get).delete(streamable::delete))
        }
        HttpTransport::Sse => Router::new().route("/sse", get(sse::open)).route(sse::MESSAGES, post(sse::post)),
    };
    let router = router.layer(middleware::from_fn_with_state(server.clone(), guard::guard)).with_state(server);
    let stop = demo.stop.clone();
    let serving = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned()).into_future();
    let grace = async {
        stop.cancelled().await;
        tokio::time::sleep(limits::STOP_GRACE).await;
    };
    tokio::select! {
        result = serving => result,
        () = grace => Ok(()),
    }
}

/// An answer in JSON.
fn json(status: StatusCode, value: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// An answer that is a stream of events, each written out already.
fn event_stream(permit: Permit, events: impl Stream<Item = String> + Send + 'static) -> Response {
    let events = events.map(move |event| {
        // The exchange is open for as long as its stream.
        let _held = &permit;
        Ok::<_, Infallible>(event)
    });
    let mut response = Body::from_stream(events).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A message as an event that cannot be resumed.
fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}
