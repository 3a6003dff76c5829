//! JSON as text: where values are, and how to change one without touching the others.

mod edit;
mod scan;
mod text;
mod twice;

pub use edit::{EditError, find, items, members, remove, set, splice};
pub use scan::{DEPTH, JsonError, Span};
pub(crate) use scan::{Names, Scanner};
pub use text::{decode, quote};
pub use twice::twice;
