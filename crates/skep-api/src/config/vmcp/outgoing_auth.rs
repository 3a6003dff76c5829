//! How a vMCP process signs in to its backends.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outgoing_strategies::{AwsSts, HeaderInjection, Obo, TokenExchange, UpstreamInject, Xaa};
use crate::config::document::null_is_empty;
use crate::raw::RawObject;

/// Values of [`OutgoingAuthSettings::source`]. The schema admits any text; the runtime admits these.
pub mod outgoing_auth_source {
    /// Backends and how to sign in to them are found while the server runs.
    pub const DISCOVERED: &str = "discovered";
    /// Everything stands in this document.
    pub const INLINE: &str = "inline";
}

/// Values of [`BackendAuthStrategy::type_`]. The schema admits any text; the runtime admits these.
pub mod strategy_type {
    pub const AWS_STS: &str = "aws_sts";
    pub const HEADER_INJECTION: &str = "header_injection";
    pub const OBO: &str = "obo";
    pub const TOKEN_EXCHANGE: &str = "token_exchange";
    pub const UNAUTHENTICATED: &str = "unauthenticated";
    pub const UPSTREAM_INJECT: &str = "upstream_inject";
    pub const XAA: &str = "xaa";
}

/// How the server signs in to its backends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingAuthSettings {
    /// How the server signs in to single backends, by their names.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub backends: BTreeMap<String, BackendAuthStrategy>,
    /// How the server signs in to backends that are not listed and bring no way of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<BackendAuthStrategy>,
    /// Where the ways to sign in come from: inline for this document alone, discovered for the backends
    /// themselves, with what stands here on top.
    pub source: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// One way to sign in to a backend. The member that belongs to type is set, the others are not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendAuthStrategy {
    /// Signing requests with credentials of an AWS role. Set it when type is aws_sts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_sts: Option<AwsSts>,
    /// A fixed header. Set it when type is header_injection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_injection: Option<HeaderInjection>,
    /// A token that lets the server act on behalf of the caller. Set it when type is obo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obo: Option<Obo>,
    /// A token that the caller's is exchanged for. Set it when type is token_exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_exchange: Option<TokenExchange>,
    /// The way to sign in: unauthenticated, header_injection, token_exchange, upstream_inject, aws_sts, xaa or obo.
    #[serde(rename = "type")]
    pub type_: String,
    /// The token that the caller obtained from an upstream identity provider. Set it when type is upstream_inject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_inject: Option<UpstreamInject>,
    /// A token of another organisation's authorization server. Set it when type is xaa.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xaa: Option<Xaa>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

impl BackendAuthStrategy {
    /// The strategy that adds nothing to a request.
    pub fn unauthenticated() -> Self {
        Self { type_: strategy_type::UNAUTHENTICATED.to_owned(), ..Self::default() }
    }
}
