//! Search in place of a long list of tools.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::duration::DurationText;
use crate::raw::RawObject;
use crate::sensitive::Sensitive;

/// How long a request for embeddings may take when nothing else is said.
pub const DEFAULT_EMBEDDING_TIMEOUT: &str = "30s";
/// How many tools a search finds at most when nothing else is said.
pub const DEFAULT_MAX_TOOLS_TO_RETURN: i64 = 8;
/// The share of a search's results that meaning decides when nothing else is said.
pub const DEFAULT_HYBRID_SEARCH_SEMANTIC_RATIO: &str = "0.5";
/// How far a tool may be from what was searched for when nothing else is said.
pub const DEFAULT_SEMANTIC_DISTANCE_THRESHOLD: &str = "1.0";

/// Search in place of a long list: clients see two tools, one that finds tools and one that calls them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.embeddingHeaders) || (has(self.embeddingProvider) && self.embeddingProvider == 'openai')",
        "message": "embeddingHeaders is only supported when embeddingProvider is 'openai'",
    },
    {
        "rule": "!has(self.embeddingHeaders) || self.embeddingHeaders.all(k, k.matches('^[!#$%&\\\\x27*+.^_\\\\x60|~0-9A-Za-z-]+$') && !(k.lowerAscii() in ['authorization', 'content-type']))",
        "message": "embeddingHeaders names must be valid HTTP header names and must not include Authorization or Content-Type",
    },
]))]
pub struct Optimizer {
    /// Headers that are sent to the embedding service. Only when embeddingProvider is openai. They are stored in
    /// clear text; the API key comes in the variable OPENAI_API_KEY.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub embedding_headers: BTreeMap<String, HeaderValue>,
    /// The model that computes embeddings. Needed when embeddingProvider is openai.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// The protocol of the embedding service. Defaults to tei.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = EmbeddingProvider::default()))]
    pub embedding_provider: Option<EmbeddingProvider>,
    /// The base address of the embedding service. In a VirtualMCPServer spec.embeddingServerRef replaces it; one of
    /// the two is needed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_service: Option<String>,
    /// How long a request for embeddings may take. Defaults to 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_EMBEDDING_TIMEOUT))]
    pub embedding_service_timeout: Option<DurationText>,
    /// The share of a search's results that meaning decides, from 0 (keywords alone) to 1 (meaning alone), written
    /// as text. Defaults to 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]*[.])?[0-9]+$"))]
    pub hybrid_search_semantic_ratio: Option<String>,
    /// How many tools a search finds at most. Defaults to 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50), extend("format" = null))]
    pub max_tools_to_return: Option<i64>,
    /// How far the meaning of a tool may be from what was searched for, from 0 (the same) to 2 (the opposite),
    /// written as text. Defaults to 1.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]*[.])?[0-9]+$"))]
    pub semantic_distance_threshold: Option<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// Protocols of embedding services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingProvider {
    /// Text Embeddings Inference, as an EmbeddingServer runs it.
    #[default]
    Tei,
    /// The embeddings endpoint of OpenAI, which many services offer.
    Openai,
}

/// The value of a header: some text without control characters other than tabs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeaderValue(pub Sensitive);

impl JsonSchema for HeaderValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "HeaderValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 1,
            "maxLength": 8192,
            "pattern": r"^[^\x00-\x08\x0A-\x1F\x7F]*$",
        })
    }
}
