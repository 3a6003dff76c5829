//! The API server: requests in, objects and Status documents out.
//!
//! ```text
//! request ─> path, options ─> resource ─> read:  get, list, watch        ─> store
//!                                      └> write: create, update, patch,
//!                                                delete: prepare ─> validate ─> own ─> store
//! ```

mod access;
mod admission;
mod aside;
mod caching;
mod codec;
mod connect;
mod connections;
mod content;
mod continue_token;
mod crd;
mod discovery;
mod documents;
mod exchange;
mod expiry;
mod health;
mod leftover;
mod limits;
mod linger;
mod listen;
mod listing;
mod metadata;
mod negotiate;
mod nodes;
mod openapi;
mod options;
mod path;
mod read;
mod registry;
mod representation;
mod reviews;
mod roles;
mod route;
mod service_range;
mod table;
mod tenure;
mod watching;
mod write;

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::auth::tokens::TokenAuthority;
use crate::status::{ApiError, Reason};
use crate::store::{Follower, Store};

pub use connect::{NodeClient, NodeClientError};
pub use limits::Limits;
pub use registry::{Registry, Resource};
pub use service_range::ServiceRange;

/// The server. Cheap to clone; all clones are one server.
#[derive(Debug, Clone)]
pub struct Server {
    state: Arc<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    /// How far the registry has taken notice of definitions.
    pub(crate) definitions: Mutex<Follower>,
    pub(crate) addresses: admission::Addresses,
    pub(crate) access: access::Access,
    nodes: OnceLock<NodeClient>,
    service_range: OnceLock<ServiceRange>,
    /// What discovery calls the server, as `host:port`.
    pub(crate) address: String,
    pub(crate) limits: Limits,
    pub(crate) in_flight: limits::InFlight,
    pub(crate) aside: aside::Aside,
    pub(crate) queues: write::Queues,
}

impl Server {
    /// A server over a store, with the usual limits. Custom resources whose definitions are in the store are served at
    /// once.
    pub async fn new(store: Store, tokens: TokenAuthority, address: impl Into<String>) -> Result<Self, StartError> {
        Self::with_limits(store, tokens, address, Limits::default()).await
    }

    /// A server over a store, with limits of its own.
    pub async fn with_limits(
        store: Store,
        tokens: TokenAuthority,
        address: impl Into<String>,
        limits: Limits,
    ) -> Result<Self, StartError> {
        let registry = Registry::default();
        for builtin in crate::builtin::table() {
            registry.insert_builtin(builtin);
        }
        let access = access::Access::new(tokens, store.clone());
        let addresses = admission::Addresses::default();
        let in_flight = limits::InFlight::new(&limits);
        let state = Arc::new(State {
            store,
            registry,
            definitions: Mutex::default(),
            addresses,
            access,
            nodes: OnceLock::new(),
            service_range: OnceLock::new(),
            address: address.into(),
            limits,
            in_flight,
            aside: aside::Aside::default(),
            queues: write::Queues::default(),
        });
        crd::install_stored(&state)?;
        write::bootstrap(&state).await.map_err(|source| StartError::Bootstrap(source.to_string()))?;
        crd::follow(&state);
        expiry::follow(&state);
        Ok(Self { state })
    }

    /// The same server with a way to its nodes, for logs of containers and conversations with them. The first one counts.
    #[must_use]
    pub fn with_nodes(self, client: NodeClient) -> Self {
        self.state.nodes.get_or_init(|| client);
        self
    }

    /// The same server with another range of addresses for services. The first one counts.
    #[must_use]
    pub fn with_service_range(self, range: ServiceRange) -> Self {
        self.state.service_range.get_or_init(|| range);
        self
    }

    /// The resources that are served now.
    pub fn registry(&self) -> &Registry {
        crd::catch_up(&self.state);
        &self.state.registry
    }
}

impl State {
    /// The way to the nodes.
    fn nodes(&self) -> Result<&NodeClient, ApiError> {
        let none = || ApiError::new(Reason::ServiceUnavailable, "this server has no certificate for its nodes");
        self.nodes.get().ok_or_else(none)
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the stored definition {name} cannot be read: {cause}")]
    Definition { name: String, cause: String },
    #[error("cannot create what is always there: {0}")]
    Bootstrap(String),
}
