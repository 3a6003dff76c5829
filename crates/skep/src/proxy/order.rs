//! What a list of steps has to be like, whoever has written it: no step is missing that the rest of the document or
//! another step asks for, none says something else than that, and none stands where it would protect nothing.

use std::collections::BTreeMap;

use skep_api::config::document::Part;
use skep_api::config::run_config::middleware::{
    AuthParameters, AuthorizationParameters, RateLimitParameters, ToolFilterParameters, ToolOverrideParameters,
};
use skep_api::config::run_config::{MiddlewareConfig, MiddlewareType, RunConfig};
use skep_operator::proxy::run_config;

/// Steps that get the server a credential of its own for the caller's.
pub(super) const GIVING: [MiddlewareType; 3] =
    [MiddlewareType::TokenExchange, MiddlewareType::AwsSts, MiddlewareType::Obo];

/// Steps that do their work once: a second one would undo it, do it to what the first has made, or count twice.
const ONCE: [MiddlewareType; 9] = [
    MiddlewareType::Audit,
    MiddlewareType::Auth,
    MiddlewareType::StripAuth,
    MiddlewareType::TokenExchange,
    MiddlewareType::ToolFilter,
    MiddlewareType::ToolCallFilter,
    MiddlewareType::Telemetry,
    MiddlewareType::AwsSts,
    MiddlewareType::Obo,
];

/// Steps, those that have to stand before them, and what these do.
const BEHIND: [(MiddlewareType, MiddlewareType, &str); 15] = [
    (MiddlewareType::Authorization, MiddlewareType::Auth, FINDS_OUT),
    (MiddlewareType::Authorization, MiddlewareType::ToolFilter, RENAMES),
    (MiddlewareType::Authorization, MiddlewareType::ToolCallFilter, RENAMES),
    (MiddlewareType::Authorization, MiddlewareType::MutatingWebhook, "which could change what was decided about"),
    (MiddlewareType::MutatingWebhook, MiddlewareType::Auth, FINDS_OUT),
    (MiddlewareType::MutatingWebhook, MiddlewareType::ToolCallFilter, RENAMES),
    (MiddlewareType::ValidatingWebhook, MiddlewareType::Auth, FINDS_OUT),
    (MiddlewareType::ValidatingWebhook, MiddlewareType::ToolCallFilter, RENAMES),
    (MiddlewareType::ValidatingWebhook, MiddlewareType::MutatingWebhook, "which could change what was validated"),
    (MiddlewareType::RateLimit, MiddlewareType::Auth, FINDS_OUT),
    (MiddlewareType::RateLimit, MiddlewareType::ToolCallFilter, RENAMES),
    (MiddlewareType::TokenExchange, MiddlewareType::Auth, FINDS_OUT),
    (MiddlewareType::AwsSts, MiddlewareType::Auth, FINDS_OUT),
    (MiddlewareType::Obo, MiddlewareType::Auth, FINDS_OUT),
    (MiddlewareType::StripAuth, MiddlewareType::Auth, "which needs the credentials that it removes"),
];
const FINDS_OUT: &str = "which finds out who calls";
const RENAMES: &str = "behind which tools have the names that the server knows";

/// Steps, those without which they do half of their work, and what comes of that.
const TOGETHER: [(MiddlewareType, MiddlewareType, &str); 2] = [
    (MiddlewareType::ToolFilter, MiddlewareType::ToolCallFilter, "the tools that it hides could still be called"),
    (MiddlewareType::ToolCallFilter, MiddlewareType::ToolFilter, "lists would show tools that cannot be called"),
];

/// What is wrong with a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Disorder {
    /// A section of the document that no step stands for.
    Missing(&'static str, MiddlewareType),
    /// A section of the document that a step contradicts.
    Differing(&'static str, MiddlewareType),
    /// A step that may be there once.
    Twice(MiddlewareType),
    /// Two steps that belong together contradict each other.
    Unequal(MiddlewareType, MiddlewareType),
    /// A step cannot do its work where it stands, or not alone.
    Misplaced(MiddlewareType, String),
}

/// Finds out what is wrong with the list of a document.
pub(super) fn check(config: &RunConfig, list: &[MiddlewareConfig]) -> Result<(), Disorder> {
    if let Some((section, step)) = missing(config, list) {
        return Err(Disorder::Missing(section, step));
    }
    if let Some(step) = ONCE.iter().find(|step| list.iter().filter(|entry| entry.type_ == **step).count() > 1) {
        return Err(Disorder::Twice(step.clone()));
    }
    if let Some((step, cause)) = alone(list) {
        return Err(Disorder::Misplaced(step, cause));
    }
    differing(config, list)?;
    if let Some(step) = without_token(list) {
        let cause = format!("strip-auth removes the token that {step} starts from; take one of the two out");
        return Err(Disorder::Misplaced(step.clone(), cause));
    }
    misplaced(list).map_or(Ok(()), |(step, cause)| Err(Disorder::Misplaced(step, cause)))
}

/// The member of a document that leads to a step.
pub(super) fn section(step: &MiddlewareType) -> Option<&'static str> {
    Some(match step {
        MiddlewareType::Audit => "audit_config",
        MiddlewareType::Auth => "oidc_config",
        MiddlewareType::Telemetry => "telemetry_config",
        MiddlewareType::RateLimit => "rate_limit_config",
        MiddlewareType::ToolFilter | MiddlewareType::ToolCallFilter => "tools_filter or tools_override",
        MiddlewareType::MutatingWebhook => "mutating_webhooks",
        MiddlewareType::ValidatingWebhook => "validating_webhooks",
        MiddlewareType::Authorization => "authz_config",
        MiddlewareType::TokenExchange => "token_exchange_config",
        MiddlewareType::AwsSts => "aws_sts_config",
        MiddlewareType::HeaderForward => "header_forward",
        _ => return None,
    })
}

/// A section of the document that no step of the list stands for.
fn missing(config: &RunConfig, list: &[MiddlewareConfig]) -> Option<(&'static str, MiddlewareType)> {
    let has_tools = !config.tools_filter.is_empty() || !config.tools_override.is_empty();
    let wanted = [
        (config.audit_config.is_some(), MiddlewareType::Audit),
        (config.telemetry_config.is_some(), MiddlewareType::Telemetry),
        (config.rate_limit_config.is_some(), MiddlewareType::RateLimit),
        (has_tools, MiddlewareType::ToolFilter),
        (has_tools, MiddlewareType::ToolCallFilter),
        (!config.mutating_webhooks.is_empty(), MiddlewareType::MutatingWebhook),
        (!config.validating_webhooks.is_empty(), MiddlewareType::ValidatingWebhook),
        (config.authz_config.is_some(), MiddlewareType::Authorization),
        (config.token_exchange_config.is_some(), MiddlewareType::TokenExchange),
        (config.aws_sts_config.is_some(), MiddlewareType::AwsSts),
    ];
    let is_missing = |step: &MiddlewareType| !list.iter().any(|entry| entry.type_ == *step);
    let proves = |entry: &MiddlewareConfig| {
        let auth = entry.read_parameters::<AuthParameters>();
        entry.type_ == MiddlewareType::Auth && auth.is_ok_and(|auth| auth.oidc_config.is_some())
    };
    if config.oidc_config.is_some() && !list.iter().any(proves) {
        return Some(("oidc_config", MiddlewareType::Auth));
    }
    if let Some(more) = config.additional_middleware_configs.iter().find(|more| is_missing(&more.type_)) {
        return Some(("additional_middleware_configs", more.type_.clone()));
    }
    let (_, step) = wanted.into_iter().find(|(is_wanted, step)| *is_wanted && is_missing(step))?;
    section(&step).map(|section| (section, step))
}

/// A step in a list without the one that it needs beside it.
fn alone(list: &[MiddlewareConfig]) -> Option<(MiddlewareType, String)> {
    let has = |step: &MiddlewareType| list.iter().any(|entry| entry.type_ == *step);
    let (step, other, why) = TOGETHER.iter().find(|(step, other, _)| has(step) && !has(other))?;
    Some((step.clone(), format!("it stands there without {other}, so {why}; add {other} with the same parameters")))
}

/// Refuses a step that lets others in, or to other things, than the section that it stands for, or than its twin.
fn differing(config: &RunConfig, list: &[MiddlewareConfig]) -> Result<(), Disorder> {
    let of = |step: MiddlewareType| list.iter().filter(move |entry| entry.type_ == step);
    // What is wrong with the sections themselves is told when steps are made of them.
    let made = run_config::chain(config).unwrap_or_default();
    for entry in made {
        let Some(section) = section(&entry.type_) else { continue };
        let is_same = |other: &MiddlewareConfig| match entry.type_ {
            MiddlewareType::Auth => config.oidc_config.is_none() || is_same::<AuthParameters>(&entry, other),
            MiddlewareType::Authorization => is_same::<AuthorizationParameters>(&entry, other),
            MiddlewareType::ToolFilter | MiddlewareType::ToolCallFilter => tools(&entry) == tools(other),
            _ => true,
        };
        if !of(entry.type_.clone()).all(is_same) {
            return Err(Disorder::Differing(section, entry.type_));
        }
    }
    let (shown, called) = (MiddlewareType::ToolFilter, MiddlewareType::ToolCallFilter);
    if of(shown.clone()).any(|shown| of(called.clone()).any(|called| tools(shown) != tools(called))) {
        return Err(Disorder::Unequal(shown, called));
    }
    Ok(())
}

fn is_same<T: Part + PartialEq>(one: &MiddlewareConfig, other: &MiddlewareConfig) -> bool {
    one.read_parameters::<T>() == other.read_parameters::<T>()
}

type Tools = (Vec<String>, BTreeMap<String, ToolOverrideParameters>);

/// The tools that a step shows; nothing when it cannot be read, which is told when it is made.
fn tools(entry: &MiddlewareConfig) -> Option<Tools> {
    let parameters: ToolFilterParameters = entry.read_parameters().ok()?;
    Some((parameters.filter_tools.unwrap_or_default(), parameters.tools_override.unwrap_or_default()))
}

/// A step that needs the caller's token, in a list with one that removes it.
fn without_token(list: &[MiddlewareConfig]) -> Option<&MiddlewareType> {
    let strips = list.iter().any(|entry| entry.type_ == MiddlewareType::StripAuth);
    list.iter().map(|entry| &entry.type_).find(|step| strips && GIVING.contains(step))
}

/// A step that stands before one that it has to stand behind.
fn misplaced(list: &[MiddlewareConfig]) -> Option<(MiddlewareType, String)> {
    let found = BEHIND.iter().find(|(step, other, _)| {
        let stands = list.iter().position(|entry| entry.type_ == *step && is_concerned(entry, other));
        let needed = list.iter().rposition(|entry| entry.type_ == *other);
        stands.zip(needed).is_some_and(|(stands, needed)| stands < needed)
    });
    found.map(|(step, other, why)| (step.clone(), format!("it stands before {other}, {why}; put it behind that")))
}

/// Limits that are the same for everybody need not know who calls.
fn is_concerned(entry: &MiddlewareConfig, other: &MiddlewareType) -> bool {
    if (&entry.type_, other) != (&MiddlewareType::RateLimit, &MiddlewareType::Auth) {
        return true;
    }
    let parameters = entry.read_parameters::<RateLimitParameters>().ok().and_then(|parameters| parameters.config);
    parameters
        .is_some_and(|config| config.per_user.is_some() || config.tools.iter().any(|tool| tool.per_user.is_some()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(document: &Value) -> Result<(), Disorder> {
        let mut document = document.clone();
        document["transport"] = json!("sse");
        let config = RunConfig::from_json(&document.to_string()).unwrap();
        check(&config, &config.middleware_configs)
    }

    fn in_order(steps: &[(&str, Value)]) -> Result<(), Disorder> {
        let steps: Vec<_> = steps.iter().map(|(step, with)| json!({"type": step, "parameters": with})).collect();
        checked(&json!({ "middleware_configs": steps }))
    }

    /// The steps that stand first wherever another one does, because it is nothing without them.
    fn beside(step: &str) -> Vec<(&'static str, Value)> {
        match step {
            "tool-filter" => vec![("tool-call-filter", json!({}))],
            "tool-call-filter" => vec![("tool-filter", json!({}))],
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_step_that_would_protect_nothing_where_it_stands_is_refused() {
        let users = json!({"config": {"perUser": {"maxTokens": 1, "refillPeriod": "1m"}}});
        let users_of_a_tool =
            json!({"config": {"tools": [{"name": "a", "perUser": {"maxTokens": 1, "refillPeriod": "1m"}}]}});
        for (step, with, other) in [
            ("authorization", json!({}), "tool-call-filter"),
            ("authorization", json!({}), "tool-filter"),
            ("authorization", json!({}), "mutating-webhook"),
            ("authorization", json!({}), "auth"),
            ("mutating-webhook", json!({}), "auth"),
            ("mutating-webhook", json!({}), "tool-call-filter"),
            ("validating-webhook", json!({}), "auth"),
            ("validating-webhook", json!({}), "tool-call-filter"),
            ("validating-webhook", json!({}), "mutating-webhook"),
            ("ratelimit", users, "auth"),
            ("ratelimit", users_of_a_tool, "auth"),
            ("ratelimit", json!({}), "tool-call-filter"),
            ("tokenexchange", json!({}), "auth"),
            ("awssts", json!({}), "auth"),
            ("obo", json!({}), "auth"),
            ("strip-auth", json!({}), "auth"),
        ] {
            let (step, other) = ((step, with), (other, json!({})));
            let parser = ("mcp-parser", json!({}));
            let with = |steps: [(&'static str, Value); 3]| in_order(&[beside(other.0), steps.to_vec()].concat());
            assert_eq!(with([other.clone(), parser.clone(), step.clone()]), Ok(()), "{step:?}");
            let Err(Disorder::Misplaced(found, cause)) = with([step.clone(), parser, other.clone()]) else {
                panic!("{step:?} may stand before {other:?}");
            };
            assert_eq!(found.as_str(), step.0);
            assert!(cause.starts_with(&format!("it stands before {}, ", other.0)), "{cause}");
        }
        let all = json!({"config": {"shared": {"maxTokens": 1, "refillPeriod": "1m"}}});
        assert_eq!(in_order(&[("ratelimit", all), ("auth", json!({}))]), Ok(()), "it is the same for everybody");
    }

    #[test]
    fn what_was_validated_is_not_changed_by_a_webhook_behind() {
        let [change, refuse] = ["mutating-webhook", "validating-webhook"].map(|step| (step, json!({})));
        assert_eq!(in_order(&[change.clone(), refuse.clone()]), Ok(()));
        let cause = "it stands before mutating-webhook, which could change what was validated; put it behind that";
        let refused = Err(Disorder::Misplaced(MiddlewareType::ValidatingWebhook, cause.to_owned()));
        assert_eq!(in_order(&[refuse.clone(), change.clone()]), refused);
        assert_eq!(in_order(&[change.clone(), refuse, change]), refused, "one of them stands behind it");
    }

    #[test]
    fn tools_that_are_hidden_in_lists_alone_cannot_still_be_called() {
        let rules = json!({"filter_tools": ["a"]});
        let [shown, called] = ["tool-filter", "tool-call-filter"].map(|step| (step, rules.clone()));
        assert_eq!(in_order(&[shown.clone(), called.clone()]), Ok(()));
        for (lone, told) in [
            (
                shown,
                "it stands there without tool-call-filter, so the tools that it hides could still be called; \
                 add tool-call-filter with the same parameters",
            ),
            (
                called,
                "it stands there without tool-filter, so lists would show tools that cannot be called; \
                 add tool-filter with the same parameters",
            ),
        ] {
            let Err(Disorder::Misplaced(step, cause)) = in_order(std::slice::from_ref(&lone)) else {
                panic!("{lone:?} may stand alone");
            };
            assert_eq!((step.as_str(), cause.as_str()), (lone.0, told));
        }
    }

    #[test]
    fn a_step_that_works_once_is_not_there_twice() {
        let twice = |step: &MiddlewareType| {
            let entry = (step.as_str(), json!({}));
            in_order(&[entry.clone(), ("mcp-parser", json!({})), entry])
        };
        for step in &ONCE {
            assert_eq!(twice(step), Err(Disorder::Twice(step.clone())));
        }
        for step in [MiddlewareType::BodyLimit, MiddlewareType::Authorization, MiddlewareType::ValidatingWebhook] {
            assert_eq!(twice(&step), Ok(()), "{step}");
        }
    }

    #[test]
    fn a_step_that_says_something_else_than_its_section_or_its_twin_is_refused() {
        let authz = |tool: &str| {
            let policy = format!("permit(principal, action, resource == Tool::\"{tool}\");");
            json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [policy], "entities_json": "[]"}})
        };
        let step = |step: &str, with: Value| json!({"type": step, "parameters": with});
        let with = |section: &str, said: Value, steps: Vec<Value>| {
            checked(&json!({section: said, "middleware_configs": steps}))
        };
        let decided = |tool| vec![step("authorization", json!({ "config_data": authz(tool) }))];
        assert_eq!(with("authz_config", authz("a"), decided("a")), Ok(()));
        let other = Disorder::Differing("authz_config", MiddlewareType::Authorization);
        assert_eq!(with("authz_config", authz("a"), decided("b")), Err(other));

        let proved = |issuer: &str| vec![step("auth", json!({"oidc_config": {"Issuer": issuer}}))];
        assert_eq!(with("oidc_config", json!({"Issuer": "https://a"}), proved("https://a")), Ok(()));
        let other = Disorder::Differing("oidc_config", MiddlewareType::Auth);
        assert_eq!(with("oidc_config", json!({"Issuer": "https://a"}), proved("https://b")), Err(other));

        let tools = |shown: &str, called: &str| {
            vec![
                step("tool-filter", json!({"filter_tools": [shown], "tools_override": null})),
                step("tool-call-filter", json!({"filter_tools": [called], "tools_override": {}})),
            ]
        };
        assert_eq!(with("tools_filter", json!(["a"]), tools("a", "a")), Ok(()));
        let other = Disorder::Differing("tools_filter or tools_override", MiddlewareType::ToolCallFilter);
        assert_eq!(with("tools_filter", json!(["a"]), tools("a", "b")), Err(other));
        let unequal = Disorder::Unequal(MiddlewareType::ToolFilter, MiddlewareType::ToolCallFilter);
        assert_eq!(checked(&json!({ "middleware_configs": tools("a", "b") })), Err(unequal));
    }
}
