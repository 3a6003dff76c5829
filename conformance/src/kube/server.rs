//! Whom a scenario talks to.

use std::collections::BTreeMap;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;

/// Why there is no answer at all. (An answer that is an error is an answer.)
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("the scenario calls as {0:?}, but no client was made for it")]
    NoClient(Caller),
    #[error("no answer: {0}")]
    NoAnswer(#[from] Box<kube::Error>),
}

/// Who makes a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Caller {
    /// A member of `system:masters`.
    #[default]
    Admin,
    /// Nobody: no client certificate. A bearer token in the headers may still say who it is.
    Anonymous,
    /// The holder of a client certificate.
    User { name: String, group: Option<String> },
}

/// An API server.
pub trait Server: Send + Sync {
    /// Makes a request; the URI has no host. The body of the answer is read by the caller, watches as they come in.
    fn call(
        &self,
        caller: &Caller,
        request: Request<Vec<u8>>,
    ) -> impl Future<Output = Result<Response<Body>, CallError>> + Send;
}

/// An API server behind `kube` clients, one for each caller.
#[derive(Clone)]
pub struct ClientServer {
    clients: BTreeMap<Caller, Client>,
}

impl std::fmt::Debug for ClientServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ClientServer").field("callers", &self.clients.keys()).finish_non_exhaustive()
    }
}

impl ClientServer {
    pub fn new(clients: impl IntoIterator<Item = (Caller, Client)>) -> Self {
        Self { clients: clients.into_iter().collect() }
    }
}

impl Server for ClientServer {
    async fn call(&self, caller: &Caller, request: Request<Vec<u8>>) -> Result<Response<Body>, CallError> {
        let client = self.clients.get(caller).ok_or_else(|| CallError::NoClient(caller.clone()))?;
        Ok(client.send(request.map(Body::from)).await.map_err(Box::new)?)
    }
}
