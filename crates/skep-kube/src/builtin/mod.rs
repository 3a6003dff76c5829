//! What the server knows about the kinds that are always there: names, schemas, defaults, rules and table columns.
//!
//! Everything here is a pure function of objects; storing, allocating and serving is for others. A create runs
//! [`default`], the admission functions, [`prepare_create`], [`validate_create`], [`allocate`] for services, then
//! [`canonical`]; an update runs [`default`], [`prepare_update`], [`validate_update`], then [`canonical`].

mod admission;
mod allocate;
mod canonical;
mod data_source;
mod default;
mod dropped;
mod event;
mod facts;
mod fit;
mod metadata;
mod place;
mod priority;
mod published;
mod quantity;
mod rows;
mod schema;
mod service_change;
mod strategy;
mod table;
mod validate;

pub use admission::{DEFAULT_ACCOUNT, admit_node, admit_pod, admit_service_account, service_account_of};
pub use allocate::{Allocations, Granted, allocate};
pub use canonical::{canonical, canonical_metadata};
pub use default::default;
pub use event::{event_from_core, event_to_core};
pub use fit::misfit;
pub use metadata::{Finalizers, validate_any_update, validate_metadata, validate_metadata_update};
pub use priority::{SYSTEM_PRIORITIES, SystemPriority, admit_priority, check_default_priority};
pub use published::definitions;
pub use quantity::{Quantity, QuantityError};
pub use rows::{Column, columns, has_own_columns, row};
pub use schema::schema;
pub use service_change::settle_service;
pub use strategy::{
    prepare_create, prepare_ephemeral_update, prepare_status_update, prepare_update, quality_of_service,
};
pub use table::{Builtin, Subresource, find, find_plural, table};
pub use validate::{
    name_rule, validate_create, validate_ephemeral_update, validate_status_update, validate_update, warnings,
};
