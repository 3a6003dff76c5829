//! Writers of ConfigMaps.

use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube::{Api, Resource as _};
use skep_conformance::api_server::ApiServer;

/// How many clients write at once, each over a connection of its own.
pub(crate) const WRITERS: usize = 4;
/// About the size of an ordinary custom resource.
const FILL_BYTES: usize = 3000;

/// The long number in the long tier.
pub(crate) fn tiered(short: usize, long: usize) -> usize {
    if is_soak() { long } else { short }
}

pub(crate) fn is_soak() -> bool {
    std::env::var_os("SKEP_SOAK").is_some()
}

pub(crate) async fn start(folder: &Path) -> ApiServer {
    ApiServer::start(Path::new(env!("CARGO_BIN_EXE_skep")), folder).await.unwrap()
}

/// The ConfigMaps of the default namespace, over a new connection.
pub(crate) async fn config_maps(server: &ApiServer) -> Api<ConfigMap> {
    Api::default_namespaced(server.admin().await.unwrap())
}

pub(crate) fn config_map(name: &str, step: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("step".to_owned(), step.to_owned()), ("fill".to_owned(), "x".repeat(FILL_BYTES))].into()),
        ..ConfigMap::default()
    }
}

pub(crate) fn revision(map: &ConfigMap) -> u64 {
    map.meta().resource_version.as_deref().unwrap().parse().unwrap()
}
