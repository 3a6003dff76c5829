//! The types of conditions.

/// The object does what it is for.
pub const READY: &str = "Ready";
/// The spec makes sense.
pub const VALID: &str = "Valid";
