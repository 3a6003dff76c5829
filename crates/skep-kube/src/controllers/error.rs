//! What can go wrong while a controller works on one object.

use skep_control::Failure;

/// Why one object could not be brought to its desired state. The work is repeated later, with growing delays.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    #[error(transparent)]
    Api(#[from] Box<kube::Error>),
    #[error("invalid label selector: {0}")]
    Selector(String),
    #[error("cannot serialize: {0}")]
    Serialize(#[from] serde_json::Error),
    #[error("cannot remove the volume folder {folder}: {source}")]
    Folder { folder: String, source: std::io::Error },
    #[error("{0} of the steps failed; the first: {1}")]
    Several(usize, Box<ControllerError>),
}

impl From<kube::Error> for ControllerError {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

impl ControllerError {
    /// The HTTP status code, when the API server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api(error) => match error.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Several(_, first) => first.code(),
            Self::Selector(_) | Self::Serialize(_) | Self::Folder { .. } => None,
        }
    }

    /// The server's own words, as they belong into conditions and events.
    pub fn server_message(&self) -> String {
        match self {
            Self::Api(error) => match error.as_ref() {
                kube::Error::Api(status) => status.message.clone(),
                other => other.to_string(),
            },
            other => other.to_string(),
        }
    }

    pub(super) fn has_reason(&self, wanted: &str) -> bool {
        matches!(self, Self::Api(error) if matches!(error.as_ref(), kube::Error::Api(status) if status.reason == wanted))
    }

    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Nothing can be created in a namespace that is going away, and nothing needs to be.
    pub(super) fn is_namespace_terminating(&self) -> bool {
        let Self::Api(error) = self else { return false };
        let kube::Error::Api(status) = error.as_ref() else { return false };
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    }
}

impl Failure for ControllerError {
    fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }
}

/// `Ok(None)` for an object that is gone.
pub(super) fn found<T>(answer: Result<T, ControllerError>) -> Result<Option<T>, ControllerError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
