//! The MCP endpoints of this machine: what they are, how they do, and where they are.
//!
//! They are read from the API server alone, so that a command and the machine itself see the same.

mod answers;
mod client_settings;
mod observed;
mod pods;
mod rows;
mod sse;
mod talk;
mod tools;
mod verify;

use talk::Silence;

pub(crate) use client_settings::{client_lines, client_settings};
pub(crate) use observed::{Followed, Observed};
pub(crate) use rows::endpoints;
pub(crate) use verify::Caller;

use std::net::SocketAddr;

use futures::stream::{self, StreamExt as _};
use http::StatusCode;
use serde::Serialize;

/// One endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Endpoint {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) transport: Option<String>,
    /// The life of the endpoint in one word.
    pub(crate) phase: String,
    pub(crate) ready: bool,
    /// Where it is inside the cluster.
    pub(crate) url: Option<String>,
    /// Where it is on this machine.
    pub(crate) local_url: Option<String>,
    /// Where that is on the network of the pods.
    #[serde(skip)]
    pub(crate) inside: Option<SocketAddr>,
    /// The names of its tools; none when it does not tell.
    pub(crate) tools: Option<Vec<String>>,
    /// Whether it tells nothing to those who do not say who they are.
    #[serde(skip)]
    pub(crate) is_guarded: bool,
    /// Why it is not ready, or what else somebody should do about it.
    pub(crate) message: Option<String>,
}

/// Where somebody is who wants to talk to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// On this machine, as its other programs.
    Machine,
    /// On the network of the pods, as `skep up` itself.
    Pods,
}

/// How many endpoints are asked at a time.
pub(crate) const MOST_ASKED: usize = 32;
/// Where MCP servers usually are, when nothing else is said; and those that speak the old way.
const USUAL_PATH: &str = "/mcp";
const OLD_PATH: &str = "/sse";

/// How messages come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Streamable,
    Sse,
}

impl Dialect {
    fn transport(self) -> &'static str {
        match self {
            Self::Streamable => "streamable-http",
            Self::Sse => "sse",
        }
    }

    /// The names of the tools at a URL. Where its host cannot be reached under that name, `address` says where it is.
    async fn tools(self, url: &str, address: Option<SocketAddr>) -> Result<Vec<String>, Silence> {
        match self {
            Self::Streamable => tools::tools(url, address).await,
            Self::Sse => sse::tools(url, address).await,
        }
    }
}

/// The part of a URL up to its path, and its path.
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |start| start + 3);
    url.split_at(url[host..].find('/').map_or(url.len(), |start| host + start))
}

impl Endpoint {
    /// Whether a client could be talking to it.
    fn is_open(&self) -> bool {
        self.ready && self.local_url.is_some()
    }

    /// The paths at which the endpoint may be, and how it is spoken to there.
    fn candidates(&self, path: &str) -> Vec<(String, Dialect)> {
        let plain = path.split(['#', '?']).next().unwrap_or_default();
        // A path that nobody has said is only where servers usually are.
        let is_guess = plain.len() <= 1 || (self.transport.is_none() && path == USUAL_PATH);
        if is_guess {
            vec![(USUAL_PATH.to_owned(), Dialect::Streamable), (OLD_PATH.to_owned(), Dialect::Sse)]
        } else if plain.ends_with(OLD_PATH) {
            vec![(path.to_owned(), Dialect::Sse)]
        } else {
            vec![(path.to_owned(), Dialect::Streamable)]
        }
    }

    /// Asks the endpoint for its tools. One of which it is not known where and how it is spoken to is asked in the usual
    /// ways, and has that path from then on if it answers there.
    pub(crate) async fn ask(mut self, side: Side) -> Self {
        let Some(known) = self.local_url.clone().filter(|_| self.is_open()) else { return self };
        let (host, path) = split(&known);
        let inside = self.inside.filter(|_| side == Side::Pods);
        for (path, dialect) in self.candidates(path) {
            let url = format!("{host}{path}");
            match dialect.tools(&url, inside).await {
                Ok(tools) => {
                    self.tools = Some(tools);
                    self.transport.get_or_insert_with(|| dialect.transport().to_owned());
                    self.local_url = Some(url);
                    self.url = self.url.map(|url| format!("{}{path}", split(&url).0));
                    break;
                }
                Err(Silence::Refused(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => self.is_guarded = true,
                Err(_) => {}
            }
        }
        self
    }

    /// What it is called among all endpoints.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Asks all endpoints for their tools, side by side, from this machine.
pub(crate) async fn ask_all(endpoints: Vec<Endpoint>) -> Vec<Endpoint> {
    let answers = stream::iter(endpoints).map(|endpoint| endpoint.ask(Side::Machine));
    answers.buffered(MOST_ASKED).collect().await
}
