//! The Kubernetes half of a proxy: the server behind it, as a StatefulSet with its Services.
//!
//! Several proxies of one MCPServer may be alive at once, an older and a newer one for instance. Whatever they do at the
//! same time, nothing that an older one says lasts over what a newer one said; see [`put`](self::put).

mod attach;
mod backend;
mod claims;
mod error;
pub mod generation;
mod ports;
mod put;
mod services;
mod sessions;
mod stateful_set;
mod template;

#[cfg(test)]
mod tests;

pub use attach::{Attached, Attachment};
pub use backend::{Backend, Deployed, Written};
pub use claims::Proxy;
pub use error::RunnerError;
pub use services::services;
pub use sessions::{pods_for_sessions, wants_pods_for_sessions};
pub use stateful_set::stateful_set;

use skep_api::config::run_config::RunConfig;

/// What the StatefulSet is called.
pub fn workload_name(config: &RunConfig) -> &str {
    if config.container_name.is_empty() { &config.name } else { &config.container_name }
}

/// What the StatefulSet is called whose absence says that nobody wants the server any more.
fn base_name(config: &RunConfig) -> &str {
    if config.base_name.is_empty() { &config.name } else { &config.base_name }
}
