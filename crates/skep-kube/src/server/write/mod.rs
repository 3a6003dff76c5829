//! Writing: every way in which an object comes to be, changes and goes.
//!
//! All of them end in [`draft`]: the object as it would be stored is prepared, validated and given its owners, and then
//! committed on the condition that the object it was made from has not changed meanwhile.

mod attempts;
mod binding;
mod body;
mod bootstrap;
mod conditions;
mod configuration;
mod create;
mod delete;
mod delete_options;
mod draft;
mod eviction;
mod expected;
mod grace;
mod own;
mod patch;
mod scale;
mod update;

pub use attempts::Queues;
pub use binding::bind;
pub use body::read_body;
pub use bootstrap::bootstrap;
pub use create::create;
pub use delete::{delete, delete_collection};
pub use eviction::evict;
pub use expected::Expected;
pub use own::{delete_own, expire, own_status};
pub use patch::patch;
pub use scale::{get as get_scale, patch as patch_scale, update as update_scale};
pub use update::update;

use crate::status::{ApiError, Reason};
use crate::store::CommitError;

use self::attempts::Attempts;
use super::exchange::Exchange;

/// What a failed commit means to the client.
fn refused(exchange: &Exchange, name: &str, error: &CommitError) -> ApiError {
    let resource = exchange.resource.name();
    match error {
        CommitError::AlreadyExists => ApiError::already_exists(&resource, name),
        CommitError::NotFound => ApiError::not_found(&resource, name),
        CommitError::Conflict { .. } => ApiError::modified(&resource, name),
        // As a real server passes on what etcd says.
        CommitError::TooLarge { .. } => ApiError::new(Reason::Unknown, "etcdserver: request is too large"),
        CommitError::Storage { .. } | CommitError::Closed => ApiError::internal(&error.to_string()),
    }
}

/// Now, as objects write it.
pub(crate) fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
