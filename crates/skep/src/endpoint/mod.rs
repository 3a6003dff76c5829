//! The MCP endpoints of this machine: what they are, how they do, and where they are.
//!
//! They are read from the API server alone, so that a command and the machine itself see the same.

mod client_settings;
mod observed;
mod rows;
mod tools;

pub(crate) use client_settings::{client_lines, client_settings};
pub(crate) use observed::{Followed, Observed};
pub(crate) use rows::endpoints;

use std::net::SocketAddr;

use futures::stream::{self, StreamExt as _};
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
/// Where MCP servers usually are, when nothing else is said.
const USUAL_PATH: &str = "/mcp";

impl Endpoint {
    /// Whether a client could be talking to it.
    fn is_open(&self) -> bool {
        self.ready && self.local_url.is_some()
    }

    /// Asks the endpoint for its tools. One that has no path in its URL is asked at the usual one, and has that path
    /// from then on if it answers there.
    pub(crate) async fn ask(mut self, side: Side) -> Self {
        let Some(known) = self.local_url.clone().filter(|_| self.is_open()) else { return self };
        let bare = known.splitn(4, '/').nth(3).is_none_or(str::is_empty);
        let address = if bare { format!("{}{USUAL_PATH}", known.trim_end_matches('/')) } else { known };
        self.tools = tools::tools(&address, self.inside.filter(|_| side == Side::Pods)).await;
        if self.tools.is_some() {
            self.transport.get_or_insert_with(|| "streamable-http".to_owned());
            if bare {
                self.local_url = Some(address);
                self.url = self.url.map(|url| format!("{}{USUAL_PATH}", url.trim_end_matches('/')));
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
