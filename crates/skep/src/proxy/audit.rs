//! What is recorded, as a document says it.

use skep_api::config::document::read;
use skep_api::config::run_config::AuditConfig;
use skep_api::config::run_config::middleware::AuditParameters;
use skep_proxy::middleware::{Audit, AuditSettings};

use super::Variables;
use super::document::judge_strangers;
use super::mounted::{mounted, mounted_new};

/// Records requests as a document says. `trusts_forwarded` says whether headers are believed about where they came from.
pub(super) fn recorder(
    parameters: &AuditParameters,
    trusts_forwarded: bool,
    variables: Variables<'_>,
) -> Result<Audit, String> {
    let config = match (&parameters.config_data, parameters.config_path.as_str()) {
        (Some(config), _) => config.clone(),
        (None, "") => AuditConfig::default(),
        (None, path) => {
            let text = std::fs::read_to_string(mounted(path, variables))
                .map_err(|error| format!("config_path {path}: {error}"))?;
            let document = serde_json::from_str(&text).map_err(|error| format!("config_path {path}: {error}"))?;
            let config = read(document).map_err(|error| format!("config_path {path}: {error}"))?;
            judge_strangers(&config, variables).map_err(|stranger| format!("config_path {path}: {stranger}"))?;
            config
        }
    };
    let usual = AuditSettings::default();
    let named = [&config.component, &parameters.component].into_iter().find(|name| !name.is_empty());
    let data_bytes = match usize::try_from(config.max_data_size) {
        Ok(0) => usual.data_bytes,
        Ok(bytes) => bytes,
        Err(_) => return Err(format!("maxDataSize: {} is below zero", config.max_data_size)),
    };
    let hops = match config.max_delegation_depth.map(usize::try_from) {
        None => usual.hops,
        Some(Ok(hops)) if hops > 0 => hops,
        Some(_) => return Err("maxDelegationDepth: it must be above zero".to_owned()),
    };
    let settings = AuditSettings {
        component: named.cloned().unwrap_or(usual.component),
        transport: parameters.transport_type.clone(),
        types: config.event_types.into_iter().collect(),
        excluded: config.exclude_event_types.into_iter().collect(),
        has_requests: config.include_request_data,
        has_answers: config.include_response_data,
        detects_errors: config.detect_application_errors.unwrap_or(usual.detects_errors),
        data_bytes,
        hops,
        file: (!config.log_file.is_empty()).then(|| mounted_new(&config.log_file, variables)),
        trusts_forwarded,
    };
    Audit::new(settings).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skep_node::container::VOLUME_ROOT_VARIABLE;

    use super::*;

    #[test]
    fn without_namespaces_files_are_those_of_the_volumes() {
        let volumes = tempfile::tempdir().unwrap();
        let folder = volumes.path().join("records");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("audit.json"), json!({"logFile": "/records/audit.log"}).to_string()).unwrap();
        let root = volumes.path().to_str().unwrap().to_owned();
        let variables = |name: &str| (name == VOLUME_ROOT_VARIABLE).then(|| root.clone());
        let parameters: AuditParameters =
            serde_json::from_value(json!({"config_path": "/records/audit.json"})).unwrap();
        recorder(&parameters, false, &variables).unwrap();
        assert!(folder.join("audit.log").exists());
    }
}
