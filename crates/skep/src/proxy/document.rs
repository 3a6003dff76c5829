//! The RunConfig of this process: the file, what the pod knows better, and what is looked up beside it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use skep_api::config::document::Part;
use skep_api::config::run_config::{ProxyMode, RunConfig, Transport};
use skep_api::config::strangers::strangers;
use skep_api::names::env::{SYSTEM_SECRET_PREFIX, runner, secret, secret_alias};
use skep_api::names::proxy_pod::RUN_CONFIG_PATHS;
use skep_node::container::VOLUME_ROOT_VARIABLE;
use skep_operator::runner::generation;

use super::{Variables, environment, in_cluster, sections};
use crate::hint::Hinted;

/// What the command line says.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) image: String,
    pub(crate) pod_patch: Option<String>,
    pub(crate) debug: bool,
}

/// Finds the document and completes it. What it asks for and this proxy cannot do is an error.
pub(crate) fn resolve(given: Given, variables: Variables<'_>) -> anyhow::Result<RunConfig> {
    let root = variables(VOLUME_ROOT_VARIABLE).map(PathBuf::from);
    let mut config = find(root.as_deref())?;
    tell_strangers(&config);
    let own = variables(runner::MCP_SERVER_GENERATION);
    config.mcpserver_generation = generation::effective(config.mcpserver_generation, own.as_deref());
    config.image = given.image;
    config.debug = given.debug;
    if let Some(patch) = given.pod_patch.filter(|patch| !patch.is_empty()) {
        config.k8s_pod_template_patch = patch.into();
    }
    check(&config)?;
    sections::check(&config)?;
    if !config.env_file_dir.is_empty() {
        config.env_vars.extend(environment::read_folder(Path::new(&config.env_file_dir))?);
    }
    add_secrets(&mut config, variables)?;
    Ok(config)
}

/// Tells members that count for nothing. Another version of the operator may have written them.
fn tell_strangers(part: &impl Part) {
    let members: Vec<String> = strangers(part).into_iter().map(|stranger| stranger.path).collect();
    if !members.is_empty() {
        let members = members.join(", ");
        tracing::warn!(members, "the configuration has members that this proxy does not know: they count for nothing");
    }
}

/// Refuses members that count for nothing in a file beside the document, and only tells them in a pod.
pub(super) fn judge_strangers(part: &impl Part, variables: Variables<'_>) -> Result<(), String> {
    match strangers(part).first() {
        Some(stranger) if !in_cluster::is_pod(variables) => return Err(stranger.to_string()),
        Some(_) => tell_strangers(part),
        None => {}
    }
    Ok(())
}

/// Reads the first file that exists. Without namespaces the volumes of a pod are below a folder of their own.
fn find(volumes: Option<&Path>) -> anyhow::Result<RunConfig> {
    for known in RUN_CONFIG_PATHS {
        let path = match (volumes, Path::new(known).strip_prefix("/")) {
            (Some(volumes), Ok(below)) => volumes.join(below),
            _ => PathBuf::from(known),
        };
        if path.try_exists().with_context(|| unreadable(&path))? {
            return read(&path);
        }
    }
    Err(Hinted::new("configuration file required but no configuration file was found")
        .hint(format!("the operator mounts it; looked for {}", RUN_CONFIG_PATHS.join(", ")))
        .hint("without Kubernetes: skep proxy run [--config FILE] --url URL, or skep proxy run [--config FILE] -- COMMAND")
        .into())
}

pub(super) fn read(path: &Path) -> anyhow::Result<RunConfig> {
    let text = fs::read_to_string(path).with_context(|| unreadable(path))?;
    parse(&text).with_context(|| unreadable(path))
}

fn unreadable(path: &Path) -> String {
    format!("cannot read the configuration file {}", path.display())
}

/// Reads a document, in which nothing may be said twice: which of the two would count is nothing to guess.
fn parse(text: &str) -> anyhow::Result<RunConfig> {
    if let Ok(Some(member)) = skep_mcp::json::twice(text) {
        anyhow::bail!("the member {member} is there twice");
    }
    Ok(RunConfig::from_json(text)?)
}

/// A document that cannot be used. Whoever has written it should look at it once more.
pub(super) fn unusable(cause: &str, variables: Variables<'_>) -> Hinted {
    let refused = Hinted::new(format!("the RunConfig cannot be used: {cause}"));
    if !in_cluster::is_pod(variables) {
        return refused;
    }
    refused.hint("the operator writes it from the MCPServer or MCPRemoteProxy; look there")
}

/// Values that make no sense, or not together.
pub(super) fn check(config: &RunConfig) -> Result<(), Hinted> {
    let wrong = |field: &str, value: &str, hint: &str| {
        Err(Hinted::new(format!("the RunConfig has {field} {value:?}, which cannot be used")).hint(hint))
    };
    if let Transport::Other(text) = &config.transport {
        return wrong("transport", text, "the transports are stdio, sse and streamable-http");
    }
    if let ProxyMode::Other(text) = &config.proxy_mode {
        return wrong("proxy_mode", text, "the modes are sse and streamable-http");
    }
    if config.stateless && config.transport == Transport::Stdio {
        return wrong("stateless", "true", "a server on standard input and output has a session; remove it");
    }
    if config.transport == Transport::Stdio && !config.remote_url.is_empty() {
        return wrong("transport", "stdio", "a server at a URL speaks sse or streamable-http");
    }
    Ok(())
}

/// Puts the secrets that the document names into the environment of the server.
fn add_secrets(config: &mut RunConfig, variables: Variables<'_>) -> Result<(), Hinted> {
    for entry in std::mem::take(&mut config.secrets) {
        let Some((name, target)) = entry
            .split_once(",target=")
            .filter(|(name, target)| !name.is_empty() && !target.is_empty() && !name.starts_with(SYSTEM_SECRET_PREFIX))
        else {
            return Err(Hinted::new("secrets: an entry is no NAME,target=VARIABLE".to_owned())
                .hint("names that begin with __thv_ are not for users"));
        };
        let found = variables(&secret(name)).or_else(|| variables(&secret_alias(name)?));
        let value = found.filter(|value| !value.is_empty()).ok_or_else(|| {
            Hinted::new(format!("secrets: there is no secret {name:?}"))
                .hint(format!("set the variable {}", secret(name)))
        })?;
        config.env_vars.insert(target.to_owned(), value.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str, variables: &[(&str, &str)]) -> Result<RunConfig, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("etc/runconfig")).unwrap();
        fs::write(folder.path().join("etc/runconfig/runconfig.json"), text).unwrap();
        let root = folder.path().to_str().unwrap();
        let find = |name: &str| {
            let known = variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            known.or_else(|| (name == VOLUME_ROOT_VARIABLE).then(|| root.to_owned()))
        };
        let given = Given { image: "image".to_owned(), pod_patch: Some("{}".to_owned()), debug: false };
        resolve(given, &find).map_err(|error| crate::hint::report(&error))
    }

    const STDIO: &str = r#"{"name": "n", "image": "other", "transport": "stdio", "mcpserver_generation": 5}"#;

    #[test]
    fn the_pod_knows_its_image_and_generation() {
        let config = resolved(STDIO, &[("THV_MCPSERVER_GENERATION", "3")]).unwrap();
        assert_eq!((config.image.as_str(), config.mcpserver_generation), ("image", 3));
        assert_eq!(config.k8s_pod_template_patch.expose(), "{}");
        assert_eq!(resolved(STDIO, &[("THV_MCPSERVER_GENERATION", "x")]).unwrap().mcpserver_generation, 5);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (text, told) in [
            ("{", "cannot read the configuration file"),
            (r#"{"transport": 7}"#, "transport: expected"),
            (r#"{"transport": ""}"#, "transport \"\""),
            (r#"{"transport": "stdio", "transport": "sse"}"#, "the member transport is there twice"),
            (
                r#"{"transport": "stdio", "oidc_config": {"Audience": "a", "Audience": ""}}"#,
                "the member oidc_config.Audience is there twice",
            ),
            (r#"{"transport": "stdio", "proxy_mode": "carrier-pigeon"}"#, "proxy_mode \"carrier-pigeon\""),
            (r#"{"transport": "stdio", "stateless": true}"#, "stateless"),
            (r#"{"transport": "stdio", "remote_url": "http://a"}"#, "transport \"stdio\""),
            (r#"{"transport": "stdio", "secrets": ["a,target=B"]}"#, "there is no secret \"a\""),
            (r#"{"transport": "stdio", "secrets": ["a"]}"#, "NAME,target=VARIABLE"),
            (r#"{"transport": "stdio", "secrets": ["__thv_a,target=B"]}"#, "NAME,target=VARIABLE"),
        ] {
            let said = resolved(text, &[]).unwrap_err();
            assert!(said.contains(told), "{text}: {said}");
        }
        let nothing = find(Some(Path::new("/no/such/folder"))).map_err(|error| error.to_string());
        assert_eq!(nothing.unwrap_err(), "configuration file required but no configuration file was found");
    }

    #[test]
    fn the_operator_is_blamed_only_where_there_is_one() {
        let told = |variables: Variables<'_>| crate::hint::report(&unusable("port: 7", variables).into());
        assert!(!told(&|_| None).contains("hint:"));
        assert!(told(&|_| Some("kubernetes".to_owned())).contains("hint: the operator writes it"));
    }

    #[test]
    fn secrets_become_variables_of_the_server() {
        let text = r#"{"transport": "stdio", "env_vars": {"A": "1"}, "secrets": ["my-key,target=KEY"]}"#;
        let config = resolved(text, &[("TOOLHIVE_SECRET_MY_KEY", "s")]).unwrap();
        assert_eq!(config.env_vars["KEY"].expose(), "s");
        assert!(!format!("{config:?}").contains("\"s\""));
    }
}
