//! The API server: requests in, objects and Status documents out.
//!
//! ```text
//! request ─> path, options ─> resource ─> read:  get, list, watch        ─> store
//!                                      └> write: create, update, patch,
//!                                                delete: prepare ─> validate ─> own ─> store
//! ```

mod access;
mod admission;
mod codec;
mod content;
mod continue_token;
mod crd;
mod discovery;
mod exchange;
mod listen;
mod metadata;
mod negotiate;
mod openapi;
mod options;
mod path;
mod read;
mod registry;
mod representation;
mod reviews;
mod route;
mod tenure;
mod watching;
mod write;

use std::sync::Arc;

use crate::auth::tokens::TokenAuthority;
use crate::store::Store;

pub use registry::{Registry, Resource};

/// The server. Cheap to clone; all clones are one server.
#[derive(Debug, Clone)]
pub struct Server {
    state: Arc<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) addresses: admission::Addresses,
    pub(crate) access: access::Access,
    /// What discovery calls the server, as `host:port`.
    pub(crate) address: String,
}

impl Server {
    /// A server over a store. Custom resources whose definitions are in the store are served at once.
    pub async fn new(store: Store, tokens: TokenAuthority, address: impl Into<String>) -> Result<Self, StartError> {
        let registry = Registry::default();
        for builtin in crate::builtin::table() {
            registry.insert_builtin(builtin);
        }
        let access = access::Access::new(tokens, &store);
        let addresses = admission::Addresses::default();
        let state = Arc::new(State { store, registry, addresses, access, address: address.into() });
        crd::install_stored(&state)?;
        write::bootstrap(&state).await.map_err(|source| StartError::Bootstrap(source.to_string()))?;
        crd::follow(&state);
        Ok(Self { state })
    }

    pub fn registry(&self) -> &Registry {
        &self.state.registry
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
