//! Why an object could not be brought to its desired state this time. It is tried again, later and later.

use kube::core::Status;
use skep_api::kind::GROUP;

/// The cause of a refusal in a namespace that is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// Something that time or another look may heal. What only a person can heal is a condition of the object instead.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{}", words(.0))]
    Api(#[source] Box<kube::Error>),
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Other(String),
    /// A failure, and what was being done.
    #[error("{doing}: {failure}")]
    While { doing: &'static str, failure: Box<Failure> },
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

impl Failure {
    /// The HTTP status code, when the API server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api(error) => match error.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::While { failure, .. } => failure.code(),
            Self::Json(_) | Self::Other(_) => None,
        }
    }

    /// Says what was being done.
    #[must_use]
    pub fn because(self, doing: &'static str) -> Self {
        Self::While { doing, failure: Box::new(self) }
    }

    /// Whether nothing can be made any more, since the whole namespace is on its way out.
    pub fn is_too_late(&self) -> bool {
        match self {
            Self::Api(error) => matches!(error.as_ref(), kube::Error::Api(status) if is_terminating(status)),
            Self::While { failure, .. } => failure.is_too_late(),
            Self::Json(_) | Self::Other(_) => false,
        }
    }

    /// Whether the API server will refuse the same request again: what is sent has to change, or a right be given.
    pub fn is_final(&self) -> bool {
        self.code().is_some_and(|code| matches!(code, 400 | 403 | 404 | 413 | 415 | 422))
    }
}

impl skep_control::Failure for Failure {
    fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }
}

/// Whether a request is refused because of a namespace that is being deleted.
fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == NAMESPACE_TERMINATING)
}

/// The server's own words; for a missing right or a missing kind, what to do as well.
fn words(error: &kube::Error) -> String {
    let kube::Error::Api(status) = error else { return error.to_string() };
    match status.code {
        403 if !is_terminating(status) => format!(
            "{}; give the operator's service account that right (deploy/manifests has the roles)",
            status.message
        ),
        404 if status.message.contains("could not find the requested resource") => {
            format!("{}; install the CRDs of {GROUP} (`skep crds | kubectl apply --server-side -f -`)", status.message)
        }
        _ => status.message.clone(),
    }
}
