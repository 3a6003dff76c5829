//! Patches: three ways to say how an object shall change, and what the server says when it cannot be done.
//!
//! Nothing here knows whether the result is valid; it is decoded, defaulted and validated like any other object.

mod conversion;
mod display;
mod json;
mod merge;
mod strategic;

#[cfg(test)]
mod tests;

pub(crate) use self::conversion::convert;

use serde_json::Value;

use crate::schema::Schema;
use crate::sorted;
use crate::status::{ApiError, FieldError, Reason, ResourceName};

/// The kinds of patches that change an object in place. Server-side apply is none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    /// Built-in kinds only.
    Strategic,
}

impl PatchKind {
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }

    /// The kind that a `Content-Type` asks for. Parameters do not matter; capital letters are not understood.
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        [Self::Json, Self::Merge, Self::Strategic].into_iter().find(|kind| kind.media_type() == media_type)
    }
}

/// The answer to a patch of a custom object in a format that custom objects do not understand, strategic patches
/// among them.
pub const UNSUPPORTED_FOR_CUSTOM_RESOURCES: &str = "the body of the request was in an unknown format - accepted media \
    types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The document is not a patch.
    #[error("{0}")]
    Malformed(String),
    #[error("Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {found}")]
    TooManyOperations { limit: usize, found: usize },
    /// An operation of a JSON patch cannot be done. The real server does not say which or why.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
    /// The patch has directives that make no sense.
    #[error("{0}")]
    Directive(String),
    /// The result is not an object of the kind.
    #[error("{problem}")]
    Unconvertible {
        /// The patch or its result, as the real server shows it.
        shown: String,
        problem: String,
    },
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::Malformed(_) => Self::new(Reason::BadRequest, message),
            PatchError::TooManyOperations { .. } => Self::new(Reason::RequestEntityTooLarge, message),
            PatchError::Rejected => Self::new(Reason::Invalid, message),
            PatchError::Directive(_) => Self::new(Reason::Unknown, message),
            PatchError::Unconvertible { shown, problem } => {
                let field = FieldError::invalid("patch", shown, problem);
                let mut error = Self::invalid(&ResourceName::default(), "", &[field]);
                // The real server has forgotten by now what the patch was about.
                error.resource = None;
                error
            }
        }
    }
}

/// An object as a patch would have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    pub object: Value,
    /// What is odd about the patch itself: members that occur more than once, or that no patch has.
    pub oddities: Vec<String>,
    /// What is left of a strategic patch, which messages show in the place of the object.
    patch: Option<Value>,
}

impl Patched {
    /// The object as messages show it.
    pub fn shown(&self) -> String {
        self.patch.as_ref().map_or_else(|| sorted::text(&self.object), display::shown)
    }
}

/// Applies a patch. Only strategic patches look at the schema.
pub fn apply(kind: PatchKind, document: &[u8], object: &Value, schema: Option<&Schema>) -> Result<Patched, PatchError> {
    let mut patched = match kind {
        PatchKind::Json => json::apply(document, object),
        PatchKind::Merge => merge::apply(document, object),
        PatchKind::Strategic => strategic::apply(document, object, schema),
    }?;
    patched.object.sort_all_objects();
    Ok(patched)
}
