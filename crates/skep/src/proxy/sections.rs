//! What a RunConfig may ask for and this proxy cannot do yet. A server that was to be protected is not served without
//! its protection: such a document is refused.
//!
//! Whether `remote_auth_config` asks for a login depends on the environment, too, and is found out where the chain is
//! made.

use skep_api::config::run_config::{MiddlewareConfig, MiddlewareType, RunConfig};
use skep_api::config::strangers::nearest;

use crate::hint::Hinted;

/// Refuses a document that asks for what is not there.
pub(super) fn check(config: &RunConfig) -> Result<(), Hinted> {
    if let Some((list, name)) = unknown(config) {
        return Err(Hinted::new(format!("the RunConfig cannot be used: {list}: the type {name:?} is not known"))
            .hint(format!("the types are {}", nearest(name, MiddlewareType::KNOWN).join(", "))));
    }
    let asked = unserved(config);
    if asked.is_empty() {
        return Ok(());
    }
    Err(refuse(&asked.join(", ")))
}

/// A document that asks for what is not there.
pub(super) fn refuse(asked: &str) -> Hinted {
    Hinted::new(format!("the RunConfig asks for what this proxy cannot do yet: {asked}"))
        .hint("a server is never served without the protection that it was to have")
        .hint("take what leads to it out of the MCPServer or MCPRemoteProxy, or use a proxy image that has it")
}

/// The lists of steps that a document may have.
fn lists(config: &RunConfig) -> [(&'static str, &[MiddlewareConfig]); 2] {
    [
        ("middleware_configs", &config.middleware_configs),
        ("additional_middleware_configs", &config.additional_middleware_configs),
    ]
}

/// A step that nobody has heard of, and the list that it is in.
fn unknown(config: &RunConfig) -> Option<(&'static str, &str)> {
    let steps = lists(config).into_iter().flat_map(|(list, steps)| steps.iter().map(move |step| (list, step)));
    steps.into_iter().find_map(|(list, step)| match &step.type_ {
        MiddlewareType::Other(name) => Some((list, name.as_str())),
        _ => None,
    })
}

fn unserved(config: &RunConfig) -> Vec<String> {
    let sections = [
        ("embedded_auth_server_config (auth server)", config.embedded_auth_server_config.is_some()),
        ("upstream_swap_config (tokens that only an auth server has)", config.upstream_swap_config.is_some()),
    ];
    let named = sections.into_iter().filter(|(_, is_asked)| *is_asked).map(|(section, _)| section.to_owned());
    let steps = lists(config).into_iter().flat_map(|(list, steps)| {
        steps.iter().filter(|step| !is_served(step)).map(move |step| format!("{list}: {}", step.type_))
    });
    named.chain(steps).collect()
}

/// Whether a step of the chain is done, or nothing to do.
fn is_served(step: &MiddlewareConfig) -> bool {
    matches!(
        step.type_,
        MiddlewareType::BodyLimit
            | MiddlewareType::Origin
            | MiddlewareType::Audit
            | MiddlewareType::Auth
            | MiddlewareType::StripAuth
            | MiddlewareType::TokenExchange
            | MiddlewareType::ToolFilter
            | MiddlewareType::ToolCallFilter
            | MiddlewareType::McpParser
            | MiddlewareType::Telemetry
            | MiddlewareType::RateLimit
            | MiddlewareType::UsageMetrics
            | MiddlewareType::MutatingWebhook
            | MiddlewareType::ValidatingWebhook
            | MiddlewareType::Authorization
            | MiddlewareType::AwsSts
            | MiddlewareType::HeaderForward
            | MiddlewareType::Obo
            | MiddlewareType::Recovery
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents that ask for one thing each, and what is said about it.
    const ASKING: [(&str, &str); 4] = [
        (r#""embedded_auth_server_config": {}"#, "embedded_auth_server_config"),
        (r#""upstream_swap_config": {}"#, "upstream_swap_config"),
        (r#""middleware_configs": [{"type": "novel"}]"#, "middleware_configs: the type \"novel\" is not known"),
        (
            r#""additional_middleware_configs": [{"type": "upstreamswap"}]"#,
            "additional_middleware_configs: upstreamswap",
        ),
    ];

    #[test]
    fn nothing_is_served_without_its_protection() {
        for (section, told) in ASKING {
            let config = RunConfig::from_json(&format!(r#"{{"transport": "stdio", {section}}}"#)).unwrap();
            let said = check(&config).unwrap_err().to_string();
            assert!(said.contains(told), "{section}: {said}");
        }
    }

    #[test]
    fn whoever_mistypes_a_step_is_told_the_right_one_first() {
        let text = r#"{"transport": "stdio", "middleware_configs": [{"type": "rate-limit"}]}"#;
        let refused = anyhow::Error::from(check(&RunConfig::from_json(text).unwrap()).unwrap_err());
        assert!(crate::hint::report(&refused).contains("hint: the types are ratelimit, "));
    }

    #[test]
    fn what_every_document_has_is_served() {
        let steps = r#"[{"type": "bodylimit", "parameters": {"max_bytes": 8}}, {"type": "auth", "parameters": {}},
            {"type": "mcp-parser", "parameters": {}}, {"type": "usagemetrics"}, {"type": "recovery", "parameters": null}]"#;
        let text = format!(
            r#"{{"transport": "stdio", "middleware_configs": {steps}, "scaling_config": {{"session_redis": {{}}}}}}"#
        );
        assert!(check(&RunConfig::from_json(&text).unwrap()).is_ok());
    }
}
