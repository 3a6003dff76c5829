//! ConfigMaps with the certificates of authorities.

use skep_api::kinds::ca_bundle::{CABundleRef, ConfigMapKeySelector};
use skep_api::names::ca_bundle::CONFIG_MAP_NAME_LIMIT;

use crate::object_names;

/// The ConfigMap of a bundle, if it can be mounted at all. Whether it exists is another question: a pod waits for it.
pub fn check(bundle: &CABundleRef) -> Result<&ConfigMapKeySelector, String> {
    let selector = bundle.config_map_ref.as_ref().ok_or("configMapRef must be specified in caBundleRef")?;
    let name = &selector.name;
    if name.is_empty() {
        return Err("configMapRef.name must be specified".to_owned());
    }
    object_names::check_name(name, "ConfigMap").map_err(|cause| format!("configMapRef.name {cause}"))?;
    if name.len() > CONFIG_MAP_NAME_LIMIT {
        return Err(format!(
            "configMapRef.name \"{name}\" is too long ({} chars); maximum is {CONFIG_MAP_NAME_LIMIT} characters to fit in \
             Kubernetes volume name",
            name.len()
        ));
    }
    Ok(selector)
}
