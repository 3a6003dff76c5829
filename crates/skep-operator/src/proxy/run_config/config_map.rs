//! The ConfigMaps that carry a RunConfig and inline policies.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use skep_api::config::run_config::{AuthzConfig, AuthzType, RunConfig};
use skep_api::hash::sha256_hex;
use skep_api::names::labels::Labels;
use skep_api::names::{annotations, labels, proxy_pod};

use super::authz;
use crate::proxy::{Inputs, Target};

/// The ConfigMap of a RunConfig, with the checksum of its content.
pub fn config_map(inputs: &Inputs<'_>, config: &RunConfig) -> ConfigMap {
    let name = inputs.common.name;
    let labels = match inputs.target {
        Target::Server(_) => labels::mcp_server_run_config(name),
        Target::Remote(_) => labels::mcp_remote_proxy_run_config(name),
    };
    let data = BTreeMap::from([(proxy_pod::RUN_CONFIG_KEY.to_owned(), config.to_json())]);
    let checksum = content_checksum(&data, &labels);
    let mut map = object(inputs, proxy_pod::run_config(name), labels, data);
    map.metadata.annotations = Some(BTreeMap::from([(annotations::CONTENT_CHECKSUM.to_owned(), checksum)]));
    map
}

/// The checksum that a ConfigMap carries; empty when it carries none.
pub fn checksum(map: &ConfigMap) -> &str {
    let annotations = map.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(annotations::CONTENT_CHECKSUM)).map(String::as_str).unwrap_or_default()
}

/// The ConfigMap of inline policies. Which claims they are read with is said in the RunConfig alone.
pub fn inline_authz(inputs: &Inputs<'_>) -> Option<ConfigMap> {
    let inline = authz::inline(inputs.common.authz_config?)?;
    let name = inputs.common.name;
    // The members are in byte order here already, so they are so in the text.
    let document = json!({
        "cedar": { "entities_json": authz::entities(inline), "policies": inline.policies },
        "type": AuthzType::Cedar,
        "version": AuthzConfig::VERSION,
    });
    let data = BTreeMap::from([(proxy_pod::AUTHZ_KEY.to_owned(), document.to_string())]);
    Some(object(inputs, proxy_pod::inline_authz(name), labels::inline_authz(inputs.labels()), data))
}

fn object(inputs: &Inputs<'_>, name: String, labels: Labels, data: BTreeMap<String, String>) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(inputs.common.namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
}

/// Every key and value of the data, then of the labels, in order and without separators.
fn content_checksum(data: &BTreeMap<String, String>, labels: &Labels) -> String {
    let text: String = data.iter().chain(labels).flat_map(|(key, value)| [key.as_str(), value.as_str()]).collect();
    sha256_hex(text.as_bytes())
}
