//! Pods of a stdio server of which each is for one session.

use std::ops::Range;

use skep_api::config::run_config::{RunConfig, Transport};
use skep_api::names::annotations::STDIO_PROCESS_PER_SESSION;

use super::{RunnerError, template};

/// The ordinals of the pods that sessions have for themselves: all but the first, which is for whoever has no session.
/// None unless the pod template asks for it.
pub fn pods_for_sessions(config: &RunConfig) -> Result<Range<i32>, RunnerError> {
    let replicas = config.scaling_config.as_ref().and_then(|scaling| scaling.backend_replicas).unwrap_or(1);
    Ok(1..if wants_pods_for_sessions(config)? { replicas.max(1) } else { 1 })
}

/// Whether sessions are to have pods for themselves, whether or not there are enough.
pub fn wants_pods_for_sessions(config: &RunConfig) -> Result<bool, RunnerError> {
    let template = template::patch(config)?;
    let metadata = template.get("metadata");
    let says_so = metadata.is_some_and(|metadata| metadata["annotations"][STDIO_PROCESS_PER_SESSION] == "true");
    Ok(says_so && config.transport == Transport::Stdio)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pods(transport: &str, replicas: Option<i32>, annotation: &str) -> Range<i32> {
        let patch = json!({"metadata": {"annotations": {STDIO_PROCESS_PER_SESSION: annotation}}}).to_string();
        let scaling = json!({"backend_replicas": replicas});
        let config = json!({"transport": transport, "k8s_pod_template_patch": patch, "scaling_config": scaling});
        pods_for_sessions(&RunConfig::from_json(&config.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn sessions_have_pods_where_there_are_several_and_somebody_asks_for_it() {
        assert_eq!(pods("stdio", Some(4), "true"), 1..4);
        for (transport, replicas, annotation) in [
            ("stdio", Some(4), "false"),
            ("stdio", Some(1), "true"),
            ("stdio", Some(0), "true"),
            ("stdio", None, "true"),
            ("sse", Some(4), "true"),
        ] {
            assert!(pods(transport, replicas, annotation).is_empty(), "{transport} {replicas:?} {annotation}");
        }
    }
}
