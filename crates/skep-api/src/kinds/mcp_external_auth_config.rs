//! MCPExternalAuthConfig: with which credentials requests leave the proxy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth_server::EmbeddedAuthServer;
use super::config_status::{ConfigStatus, REFERENCES_COLUMN, VALID_COLUMN};
use super::outgoing_auth::aws_sts::AwsSts;
use super::outgoing_auth::on_behalf_of::OnBehalfOf;
use super::outgoing_auth::token_exchange::TokenExchange;
use super::outgoing_auth::xaa::CrossApplicationAccess;
use super::outgoing_auth::{BearerToken, HeaderInjection, UpstreamInject};
use crate::kind::{Column, Versions, kind};

kind! {
    /// MCPExternalAuthConfig says with which credentials requests go on from the proxy to the MCP server, or describes
    /// an embedded authorization server with which clients sign in. Workloads name it in their externalAuthConfigRef
    /// or authServerRef.
    MCPExternalAuthConfig(MCPExternalAuthConfigSpec, ConfigStatus) {
        plural: "mcpexternalauthconfigs",
        short_names: &["extauth", "mcpextauth"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[Column::string("Type", ".spec.type"), VALID_COLUMN, REFERENCES_COLUMN, Column::AGE],
        scale: None,
    }
}

/// A way to get credentials. The member that has the name of the type is set, and no other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'tokenExchange' ? has(self.tokenExchange) : !has(self.tokenExchange)",
        "message": "tokenExchange configuration must be set if and only if type is 'tokenExchange'",
    },
    {
        "rule": "self.type == 'headerInjection' ? has(self.headerInjection) : !has(self.headerInjection)",
        "message": "headerInjection configuration must be set if and only if type is 'headerInjection'",
    },
    {
        "rule": "self.type == 'bearerToken' ? has(self.bearerToken) : !has(self.bearerToken)",
        "message": "bearerToken configuration must be set if and only if type is 'bearerToken'",
    },
    {
        "rule": "self.type == 'embeddedAuthServer' ? has(self.embeddedAuthServer) : !has(self.embeddedAuthServer)",
        "message": "embeddedAuthServer configuration must be set if and only if type is 'embeddedAuthServer'",
    },
    {
        "rule": "self.type == 'awsSts' ? has(self.awsSts) : !has(self.awsSts)",
        "message": "awsSts configuration must be set if and only if type is 'awsSts'",
    },
    {
        "rule": "self.type == 'upstreamInject' ? has(self.upstreamInject) : !has(self.upstreamInject)",
        "message": "upstreamInject configuration must be set if and only if type is 'upstreamInject'",
    },
    {
        "rule": "self.type == 'obo' ? has(self.obo) : !has(self.obo)",
        "message": "obo configuration must be set if and only if type is 'obo'",
    },
    {
        "rule": "self.type == 'xaa' ? has(self.xaa) : !has(self.xaa)",
        "message": "xaa configuration must be set if and only if type is 'xaa'",
    },
    {
        "rule": "self.type == 'unauthenticated' ? (!has(self.tokenExchange) && !has(self.headerInjection) && !has(self.bearerToken) && !has(self.embeddedAuthServer) && !has(self.awsSts) && !has(self.upstreamInject) && !has(self.obo) && !has(self.xaa)) : true",
        "message": "no configuration must be set when type is 'unauthenticated'",
    },
]))]
pub struct MCPExternalAuthConfigSpec {
    /// Signatures for AWS with temporary credentials. Set it when type is awsSts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_sts: Option<AwsSts>,
    /// A fixed bearer token. Set it when type is bearerToken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token: Option<BearerToken>,
    /// An authorization server inside the proxy. Set it when type is embeddedAuthServer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded_auth_server: Option<EmbeddedAuthServer>,
    /// A header with a fixed value. Set it when type is headerInjection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_injection: Option<HeaderInjection>,
    /// Tokens with which the proxy acts on behalf of users. Set it when type is obo; an empty object is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obo: Option<OnBehalfOf>,
    /// Tokens that are obtained in exchange for those of clients. Set it when type is tokenExchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_exchange: Option<TokenExchange>,
    /// The way in which requests get their credentials.
    #[serde(rename = "type")]
    pub type_: ExternalAuthType,
    /// The user's token from an upstream provider. Set it when type is upstreamInject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_inject: Option<UpstreamInject>,
    /// Access to another application that the user's identity provider vouches for. Set it when type is xaa.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xaa: Option<CrossApplicationAccess>,
}

/// Ways in which requests get their credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ExternalAuthType {
    /// The client's token is exchanged for another one (RFC 8693).
    // The default only serves an object without a spec. It must be a type that is invalid without its member, so
    // that such an object does not pass for one that asks for no credentials.
    #[default]
    TokenExchange,
    /// A header with a fixed value is added. Only in a VirtualMCPServer.
    HeaderInjection,
    /// A fixed bearer token is sent. Only toward remote servers.
    BearerToken,
    /// No credentials are added.
    Unauthenticated,
    /// Clients sign in at an authorization server inside the proxy, and the user's token from the provider behind it
    /// is sent.
    EmbeddedAuthServer,
    /// Requests are signed with temporary AWS credentials. Only toward remote servers and in a VirtualMCPServer.
    AwsSts,
    /// The user's token from a provider of the embedded authorization server is sent. Only in a VirtualMCPServer.
    UpstreamInject,
    /// The client's token is exchanged for one with which the proxy acts on the user's behalf.
    Obo,
    /// The user's identity provider vouches for the user at another application. Only in a VirtualMCPServer.
    Xaa,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_without_a_spec_does_not_pass_for_unauthenticated() {
        let config: MCPExternalAuthConfig = serde_json::from_value(json!({ "metadata": { "name": "empty" } })).unwrap();
        assert_ne!(config.spec.type_, ExternalAuthType::Unauthenticated);
    }
}
