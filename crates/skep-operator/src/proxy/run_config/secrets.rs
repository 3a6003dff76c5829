//! The Secrets without which a RunConfig would describe a proxy that cannot do what it is told.

use skep_api::kinds::mcp_external_auth_config::ExternalAuthType;
use skep_api::kinds::references::SecretKeyRef;

use super::BuildError;
use crate::proxy::Inputs;

/// A key of a Secret that must exist when the RunConfig is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededSecret {
    pub name: String,
    pub key: String,
    pub why: Need,
}

/// What a Secret is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The client with which the proxy asks about opaque tokens: `inline.clientSecretRef` of the MCPOIDCConfig.
    OidcClient,
    /// The client with which the proxy exchanges tokens: `tokenExchange.clientSecretRef`.
    TokenExchangeClient,
    /// The client with which the proxy acts on behalf of users: `obo.clientSecretRef`.
    OnBehalfOfClient,
    /// The token that every request to the server carries: `bearerToken.tokenSecretRef`.
    BearerToken,
}

impl Need {
    fn words(self) -> &'static str {
        match self {
            Self::OidcClient => "OIDC client secret",
            Self::TokenExchangeClient | Self::OnBehalfOfClient => "client secret",
            Self::BearerToken => "bearer token secret",
        }
    }
}

impl Need {
    /// The member that names it.
    fn field(self) -> &'static str {
        match self {
            Self::OidcClient => "inline.clientSecretRef of the MCPOIDCConfig",
            Self::TokenExchangeClient => "tokenExchange.clientSecretRef of the MCPExternalAuthConfig",
            Self::OnBehalfOfClient => "obo.clientSecretRef of the MCPExternalAuthConfig",
            Self::BearerToken => "bearerToken.tokenSecretRef of the MCPExternalAuthConfig",
        }
    }
}

impl NeededSecret {
    fn new(secret: &SecretKeyRef, why: Need) -> Self {
        Self { name: secret.name.clone(), key: secret.key.clone(), why }
    }

    /// What it is and where.
    pub fn what(&self, inputs: &Inputs<'_>) -> String {
        format!("{} {}/{}", self.why.words(), inputs.common.namespace, self.name)
    }

    /// What is said when the Secret does not exist.
    pub fn is_missing(&self, inputs: &Inputs<'_>) -> BuildError {
        let (what, field) = (self.what(inputs), self.why.field());
        let cause = format!("failed to get {what}: it does not exist; create it, or correct {field}");
        BuildError::Create { kind: inputs.kind(), cause }
    }

    /// What is said when the Secret does not have the key.
    pub fn lacks_key(&self, inputs: &Inputs<'_>) -> BuildError {
        let (what, field) = (self.what(inputs), self.why.field());
        let cause = format!("{what} is missing key {:?}; add it, or correct {field}", self.key);
        BuildError::Create { kind: inputs.kind(), cause }
    }
}

/// The keys of Secrets that must exist, in the order in which they should be reported.
///
/// Secrets that are mounted, or that only reach the proxy's environment, are not here: a pod waits for them.
pub fn needed_secrets(inputs: &Inputs<'_>) -> Vec<NeededSecret> {
    let mut needed = Vec::new();
    let provider = inputs.resolved.oidc.as_ref().and_then(|object| object.spec.inline.as_ref());
    if let (Some(_), Some(provider)) = (inputs.common.oidc_config_ref, provider) {
        needed.extend(provider.client_secret_ref.as_ref().map(|secret| NeededSecret::new(secret, Need::OidcClient)));
    }
    let (Some(_), Some(object)) = (inputs.common.external_auth_config_ref, &inputs.resolved.external_auth) else {
        return needed;
    };
    let spec = &object.spec;
    let (secret, why) = match spec.type_ {
        ExternalAuthType::TokenExchange => (
            spec.token_exchange.as_ref().and_then(|exchange| exchange.client_secret_ref.as_ref()),
            Need::TokenExchangeClient,
        ),
        ExternalAuthType::Obo => {
            (spec.obo.as_ref().and_then(|settings| settings.client_secret_ref.as_ref()), Need::OnBehalfOfClient)
        }
        ExternalAuthType::BearerToken => {
            (spec.bearer_token.as_ref().map(|token| &token.token_secret_ref), Need::BearerToken)
        }
        ExternalAuthType::AwsSts
        | ExternalAuthType::EmbeddedAuthServer
        | ExternalAuthType::HeaderInjection
        | ExternalAuthType::Unauthenticated
        | ExternalAuthType::UpstreamInject
        | ExternalAuthType::Xaa => return needed,
    };
    needed.extend(secret.map(|secret| NeededSecret::new(secret, why)));
    needed
}
