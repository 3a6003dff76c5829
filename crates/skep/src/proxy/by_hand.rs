//! The RunConfig of a proxy that somebody runs by hand. Whoever writes one gets what it says, or is told why not: nothing in
//! it is passed over in silence, as it may be in one that another version of the operator has written.

use std::path::Path;

use skep_api::config::run_config::middleware::{BodyLimitParameters, OriginParameters};
use skep_api::config::run_config::{MiddlewareType, RunConfig, Transport};
use skep_api::config::strangers::strangers;
use skep_proxy::is_origin;

use super::{document, sections};
use crate::hint::Hinted;

/// The document of a proxy before a server at a URL or a command of this machine.
pub(crate) fn read(file: &Path, url: Option<&str>) -> anyhow::Result<RunConfig> {
    let mut config = document::read(file)?;
    refuse_strangers(&config)?;
    config.transport = match (url, config.transport) {
        (None, _) => Transport::Stdio,
        (Some(_), Transport::Sse) => Transport::Sse,
        (Some(_), _) => Transport::StreamableHttp,
    };
    url.unwrap_or_default().clone_into(&mut config.remote_url);
    let config = config.normalised();
    document::check(&config)?;
    sections::check(&config)?;
    refuse_without_effect(&config)?;
    tell_of_pods(&config);
    Ok(config)
}

/// A member that nobody knows would have been a protection, for all we know.
fn refuse_strangers(config: &RunConfig) -> Result<(), Hinted> {
    let mut unknown = strangers(config).into_iter();
    let Some(first) = unknown.next() else { return Ok(()) };
    let refused = Hinted::new(format!("the RunConfig cannot be used: {first}"));
    let refused = unknown.fold(refused, |refused, other| refused.hint(other.to_string()));
    Err(refused.hint("every member is told of in docs/reference/runconfig.md"))
}

/// Refuses what could not do what it says.
fn refuse_without_effect(config: &RunConfig) -> Result<(), Hinted> {
    let wrong =
        |cause: String, hint: &str| Err(Hinted::new(format!("the RunConfig cannot be used: {cause}")).hint(hint));
    for (member, is_told, section) in [
        ("authz_config_path", !config.authz_config_path.is_empty(), "authz_config"),
        ("audit_config_path", !config.audit_config_path.is_empty(), "audit_config"),
    ] {
        if is_told {
            let hint = format!("write what the file says into {section}");
            return wrong(format!("{member}: no file is read for it"), &hint);
        }
    }
    if config.remote_auth_config.is_some() && config.remote_url.is_empty() {
        let hint = "a token of ours is for servers of somebody else; use --url, or leave remote_auth_config out";
        return wrong("remote_auth_config: a command has no use for it".to_owned(), hint);
    }
    let listed = |origins: &[String]| origins.iter().find(|origin| !is_origin(origin)).cloned();
    let no_origin = |place: &str, origin: String| {
        wrong(format!("{place}: {origin:?} is no origin"), "an origin is such as https://hive.example:8443")
    };
    if let Some(origin) = listed(&config.allowed_origins) {
        return no_origin("allowed_origins", origin);
    }
    for (index, step) in config.middleware_configs.iter().enumerate() {
        let place = format!("middleware_configs[{index}].parameters");
        // What cannot be read is told when the steps are made.
        match step.type_ {
            MiddlewareType::BodyLimit => {
                let limit: BodyLimitParameters = step.read_parameters().unwrap_or_default();
                if limit.max_bytes < 0 {
                    return wrong(format!("{place}.max_bytes: {} is below zero", limit.max_bytes), "0 is the default");
                }
            }
            MiddlewareType::Origin => {
                let origins: OriginParameters = step.read_parameters().unwrap_or_default();
                if let Some(origin) = listed(&origins.allowed_origins) {
                    return no_origin(&format!("{place}.allowed_origins"), origin);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Such members are in documents of the operator, which may well be used here.
fn tell_of_pods(config: &RunConfig) {
    let of_pods = [
        ("cmd_args", !config.cmd_args.is_empty()),
        ("env_file_dir", !config.env_file_dir.is_empty()),
        ("env_vars", !config.env_vars.is_empty()),
        ("image", !config.image.is_empty()),
        ("k8s_pod_template_patch", !config.k8s_pod_template_patch.is_empty()),
        ("publish", !config.publish.is_empty()),
        ("secrets", !config.secrets.is_empty()),
        ("target_port", config.target_port != 0),
    ];
    let told: Vec<&str> = of_pods.into_iter().filter(|(_, is_told)| *is_told).map(|(member, _)| member).collect();
    if !told.is_empty() {
        let members = told.join(", ");
        tracing::warn!(members, "the RunConfig has members about the pods of a server, which count for nothing here");
    }
}

#[cfg(test)]
#[path = "by_hand_tests.rs"]
mod tests;
