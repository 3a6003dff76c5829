//! Why there is no RunConfig, and what that means for the workload.

/// A RunConfig that cannot be built. The text is what `status.message` says after `Failed to build configuration: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The embedded auth server does not go with the workload. Only an edit helps, so it is not tried again.
    #[error("{violation}")]
    EmbeddedAuthServer {
        /// Where the auth server comes from, and so whose condition tells.
        reference: AuthServerReference,
        violation: String,
    },
    /// Something that the workload or an object it names says cannot be written down.
    #[error("failed to create RunConfig from {kind}: {cause}")]
    Create { kind: &'static str, cause: String },
    /// The document was written down, and no proxy can run with it.
    #[error("invalid RunConfig: {0}")]
    Invalid(String),
}

/// The member of a spec that names the embedded auth server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthServerReference {
    /// `spec.authServerRef`: the condition is `AuthServerRefValidated`.
    AuthServerRef,
    /// `spec.externalAuthConfigRef`: the condition is `ExternalAuthConfigValidated`.
    ExternalAuthConfigRef,
}
