//! The steps that a document asks for, as the proxy has them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use skep_api::config::run_config::middleware::{
    AuthParameters, HeaderForwardParameters, ToolFilterParameters, ToolOverrideParameters,
};
use skep_api::config::run_config::{MiddlewareConfig, MiddlewareType, RunConfig};
use skep_api::names::env::{runner, secret};
use skep_operator::proxy::run_config;
use skep_proxy::middleware::{Annotations, Authentication, Chain, ForwardHeaders, Power, Shown, Step, ToolRules};

use super::document::unusable;
use super::order::{self, Disorder, GIVING};
use super::{Variables, audit, aws_sts, oidc, outgoing, policy, rate_limit, sections, telemetry};
use crate::hint::Hinted;

/// The chain of a document: the one that it has, or else what follows from the rest of it.
pub(crate) async fn build(config: &RunConfig, variables: Variables<'_>) -> Result<Chain, Hinted> {
    let list = match config.middleware_configs.as_slice() {
        [] => Cow::Owned(run_config::chain(config).map_err(|cause| unusable(&cause, variables))?),
        list => Cow::Borrowed(list),
    };
    order::check(config, &list).map_err(|disorder| disordered(config, disorder, variables))?;
    tell(config, &list);
    let mut steps = Vec::new();
    for entry in list.iter() {
        let step = step(entry, config, variables).await;
        steps.extend(step.map_err(|cause| wrong(config, &entry.type_, &cause, variables))?);
    }
    steps.extend(secret_headers(config, variables)?.map(Step::ForwardHeaders));
    if let Some(token) = own_token(config, variables)? {
        if let Some(entry) = list.iter().find(|entry| GIVING.contains(&entry.type_)) {
            let cause = format!("remote_auth_config: the step {} gives the server another token", entry.type_);
            return Err(unusable(&cause, variables).hint("take one of the two out"));
        }
        steps.push(Step::ForwardHeaders(token));
    }
    Ok(Chain::new(steps))
}

/// Tells what protects less than somebody may think.
fn tell(config: &RunConfig, list: &[MiddlewareConfig]) {
    let has = |step: MiddlewareType| list.iter().any(|entry| entry.type_ == step);
    if !has(MiddlewareType::Auth) {
        tracing::warn!("callers are not asked who they are: middleware_configs has no step auth");
    }
    if !has(MiddlewareType::Authorization) && !config.authz_config_path.is_empty() {
        tracing::warn!("authz_config_path has no effect without authz_config: everybody may do everything");
    }
    if !has(MiddlewareType::Audit) && !config.audit_config_path.is_empty() {
        tracing::warn!("audit_config_path has no effect without audit_config: nothing is recorded");
    }
}

/// A list that would not protect the server as the document says.
fn disordered(config: &RunConfig, disorder: Disorder, variables: Variables<'_>) -> Hinted {
    let problem = match disorder {
        Disorder::Misplaced(step, cause) => return wrong(config, &step, &cause, variables),
        Disorder::Missing(section, step) => {
            format!("the RunConfig has {section}, but middleware_configs has no step {step}")
        }
        Disorder::Differing(section, step) => {
            format!("the RunConfig has {section}, but the step {step} of middleware_configs says something else")
        }
        Disorder::Twice(step) => format!("middleware_configs has the step {step} twice"),
        Disorder::Unequal(one, other) => format!("the steps {one} and {other} of middleware_configs must say the same"),
    };
    Hinted::new(problem)
        .hint("a server is never served without what it was to have; leave middleware_configs out to have it made")
}

/// A step that cannot be made, under the name of what leads to it: a list that somebody has written, or another section.
fn wrong(config: &RunConfig, step: &MiddlewareType, cause: &str, variables: Variables<'_>) -> Hinted {
    let is_added = config.additional_middleware_configs.iter().any(|more| more.type_ == *step);
    let place = match order::section(step) {
        _ if !config.middleware_configs.is_empty() => format!("middleware_configs: {step}"),
        Some(section) if !is_added => section.to_owned(),
        _ => format!("additional_middleware_configs: {step}"),
    };
    unusable(&format!("{place}: {cause}"), variables)
}

/// The step of an entry; nothing when there is nothing to do for it.
async fn step(entry: &MiddlewareConfig, config: &RunConfig, variables: Variables<'_>) -> Result<Option<Step>, String> {
    Ok(match entry.type_ {
        MiddlewareType::Audit => {
            let parameters = entry.read_parameters().map_err(text)?;
            Some(Step::Audit(audit::recorder(&parameters, config.trust_proxy_headers, variables)?))
        }
        MiddlewareType::Auth => {
            let auth: AuthParameters = entry.read_parameters().map_err(text)?;
            Some(Step::Authenticate(match &auth.oidc_config {
                None => Authentication::Local,
                Some(config) => Authentication::Oidc(Box::new(oidc::validator(config, variables)?)),
            }))
        }
        MiddlewareType::StripAuth => Some(Step::StripCredentials),
        MiddlewareType::TokenExchange => Some(Step::ExchangeToken(outgoing::token_exchange(entry, variables)?)),
        MiddlewareType::ToolFilter => Some(Step::ToolLists(tool_rules(entry)?)),
        MiddlewareType::ToolCallFilter => Some(Step::ToolCalls(tool_rules(entry)?)),
        MiddlewareType::McpParser => Some(Step::Parse),
        MiddlewareType::Telemetry => {
            telemetry::telemetry(&entry.read_parameters().map_err(text)?, config, variables)?.map(Step::Telemetry)
        }
        MiddlewareType::RateLimit => {
            let parameters = entry.read_parameters().map_err(text)?;
            Some(Step::LimitRates(rate_limit::limiter(&parameters, variables).await?))
        }
        MiddlewareType::MutatingWebhook => Some(Step::Webhooks(policy::webhooks(Power::Change, entry, variables)?)),
        MiddlewareType::ValidatingWebhook => Some(Step::Webhooks(policy::webhooks(Power::Refuse, entry, variables)?)),
        MiddlewareType::Authorization => Some(Step::Authorize(policy::authorizer(config, entry, variables)?)),
        MiddlewareType::AwsSts => Some(Step::SignForAws(aws_sts::credentials(config, entry, variables)?)),
        MiddlewareType::Obo => Some(Step::ActOnBehalf(outgoing::on_behalf_of(entry, variables)?)),
        MiddlewareType::HeaderForward => {
            let headers: HeaderForwardParameters = entry.read_parameters().map_err(text)?;
            let headers = headers.add_headers.into_iter().map(|(name, value)| (name, value.0)).collect();
            Some(Step::ForwardHeaders(ForwardHeaders::new(&headers).map_err(text)?))
        }
        MiddlewareType::Recovery => Some(Step::Recover),
        // The front has these, and others were refused before.
        _ => None,
    })
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn tool_rules(entry: &MiddlewareConfig) -> Result<ToolRules, String> {
    let parameters: ToolFilterParameters = entry.read_parameters().map_err(text)?;
    let overrides = parameters.tools_override.unwrap_or_default().into_iter();
    let shown = |it: ToolOverrideParameters| {
        let told = it.annotations.unwrap_or_default();
        let annotations = Annotations {
            title: told.title,
            read_only: told.read_only_hint,
            destructive: told.destructive_hint,
            idempotent: told.idempotent_hint,
            open_world: told.open_world_hint,
        };
        Shown { name: it.name, description: it.description, annotations }
    };
    let overrides = overrides.map(|(tool, it)| (tool, shown(it))).collect();
    ToolRules::new(parameters.filter_tools.unwrap_or_default(), overrides).map_err(text)
}

/// The headers for a server of somebody else, with the values that only the environment has.
fn secret_headers(config: &RunConfig, variables: Variables<'_>) -> Result<Option<ForwardHeaders>, Hinted> {
    let Some(forward) = &config.header_forward else { return Ok(None) };
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in &forward.add_plaintext_headers {
        headers.insert(name.to_ascii_lowercase(), value.expose().to_owned());
    }
    for (name, id) in &forward.add_headers_from_secret {
        let value = variables(&secret(id)).filter(|value| !value.is_empty()).ok_or_else(|| {
            Hinted::new(format!("header_forward: there is no secret for the header {name}"))
                .hint(format!("set the variable {}", secret(id)))
        })?;
        headers.insert(name.to_ascii_lowercase(), value);
    }
    if headers.is_empty() {
        return Ok(None);
    }
    if config.remote_url.is_empty() {
        return Err(Hinted::new("the RunConfig has header_forward, but no remote_url")
            .hint("headers are added for servers of somebody else; set remote_url, or leave header_forward out"));
    }
    ForwardHeaders::new(&headers).map(Some).map_err(|error| unusable(&format!("header_forward: {error}"), variables))
}

/// Our own token for a server of somebody else. A server of ours has no use for one.
fn own_token(config: &RunConfig, variables: Variables<'_>) -> Result<Option<ForwardHeaders>, Hinted> {
    let Some(auth) = &config.remote_auth_config else { return Ok(None) };
    let Some(source) = outgoing::bearer_token(auth, variables) else {
        let variable = runner::REMOTE_AUTH_BEARER_TOKEN;
        let hint = format!("a token needs no login: set bearer_token, bearer_token_file or the variable {variable}");
        return Err(sections::refuse("remote_auth_config (a login at the server)").hint(hint));
    };
    if config.remote_url.is_empty() {
        return Ok(None);
    }
    let wrong = |cause: String| Hinted::new(format!("remote_auth_config: {cause}"));
    let token = source.read(variables).map_err(wrong)?;
    let headers = [("authorization".to_owned(), format!("Bearer {token}"))].into();
    ForwardHeaders::new(&headers).map(Some).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn built(text: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let config = RunConfig::from_json(&format!("{{\"transport\": \"sse\", {text}}}")).unwrap();
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        build(&config, &find).await.map(|chain| format!("{chain:?}")).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_document_without_a_chain_gets_one() {
        let chain = built(r#""tools_filter": ["a"]"#, &[]).await.unwrap();
        let places: Vec<_> = ["ToolLists", "ToolCalls", "Parse"].map(|layer| chain.find(layer).unwrap()).into();
        assert!(places.is_sorted(), "{chain}");
    }

    #[tokio::test]
    async fn a_step_that_makes_no_sense_is_named() {
        for (text, told) in [
            (
                r#""middleware_configs": [{"type": "header-forward", "parameters": {"add_headers": {"Host": "s"}}}]"#,
                "header-forward: the header Host cannot be set",
            ),
            (
                r#""tools_filter": ["a"], "middleware_configs": [{"type": "tool-filter", "parameters": {"filter_tools": ["a"]}}]"#,
                "no step tool-call-filter",
            ),
            (
                r#""authz_config": {"type": "cedarv1"}, "middleware_configs": [{"type": "mcp-parser", "parameters": {}}]"#,
                "no step authorization",
            ),
            (
                r#""middleware_configs": [{"type": "authorization", "parameters": {"config_data": {"type": "opa"}}}]"#,
                "authorization: type \"opa\" is not one of",
            ),
            (
                r#""middleware_configs": [{"type": "validating-webhook", "parameters": {"webhooks": []}}]"#,
                "validating-webhook: there is no webhook",
            ),
            (
                r#""additional_middleware_configs": [{"type": "strip-auth"}], "middleware_configs": [{"type": "mcp-parser", "parameters": {}}]"#,
                "no step strip-auth",
            ),
            (
                r#""middleware_configs": [{"type": "strip-auth"}, {"type": "tokenexchange", "parameters": {}}]"#,
                "tokenexchange: strip-auth removes the token that tokenexchange starts from",
            ),
            (
                r#""middleware_configs": [{"type": "awssts", "parameters": {}}, {"type": "strip-auth"}]"#,
                "awssts: strip-auth removes the token",
            ),
            (r#""middleware_configs": [{"type": "awssts", "parameters": {}}]"#, "awssts: it needs a remote_url"),
            (
                r#""remote_url": "https://a", "aws_sts_config": {}, "middleware_configs": [{"type": "auth", "parameters": {}}]"#,
                "no step awssts",
            ),
            (r#""header_forward": {"add_plaintext_headers": {"X-A": "s"}}"#, "no remote_url"),
            (r#""middleware_configs": [{"type": "auth", "parameters": 7}]"#, "auth: "),
            (
                r#""middleware_configs": [{"type": "audit", "parameters": {"config_data": {"maxDataSize": -1}}}]"#,
                "maxDataSize",
            ),
            (r#""middleware_configs": [{"type": "telemetry", "parameters": {}}]"#, "telemetry: it has no config"),
            (
                r#""middleware_configs": [{"type": "telemetry", "parameters": {"config": {"endpoint": "otel:4318"}}}]"#,
                "telemetry: endpoint is set, but neither tracingEnabled nor metricsEnabled is",
            ),
            (
                r#""telemetry_config": {}, "middleware_configs": [{"type": "mcp-parser", "parameters": {}}]"#,
                "telemetry_config, but middleware_configs has no step telemetry",
            ),
            (
                r#""middleware_configs": [{"type": "ratelimit", "parameters": {"redis_addr": "127.0.0.1:1",
                    "config": {"shared": {"maxTokens": 0, "refillPeriod": "1m"}}}}]"#,
                "ratelimit: shared: maxTokens must be above zero",
            ),
            (
                r#""oidc_config": {"ResourceURL": "https://r"}"#,
                "cannot be used: oidc_config: there is neither an Issuer nor a JWKSURL",
            ),
            (
                r#""oidc_config": {"Issuer": "https://i"}, "middleware_configs": [{"type": "auth", "parameters": {}}]"#,
                "oidc_config, but middleware_configs has no step auth",
            ),
            (
                r#""remote_url": "https://a", "header_forward": {"add_headers_from_secret": {"X-A": "ID"}}"#,
                "no secret for the header X-A",
            ),
        ] {
            let said = built(text, &[]).await.unwrap_err();
            assert!(said.contains(told), "{text}: {said}");
        }
    }

    #[tokio::test]
    async fn filters_of_tools_that_make_no_sense_are_named() {
        let odd = [("{}", "tool-filter: there is neither"), (r#"{"filter_tools": 7}"#, "tool-filter: filter_tools")];
        for (rules, told) in odd {
            let steps = ["tool-filter", "tool-call-filter"];
            let steps = steps.map(|step| format!(r#"{{"type": "{step}", "parameters": {rules}}}"#)).join(", ");
            let said = built(&format!(r#""middleware_configs": [{steps}]"#), &[]).await.unwrap_err();
            assert!(said.contains(told), "{said}");
        }
    }

    #[tokio::test]
    async fn a_list_that_does_not_protect_as_the_document_says_is_refused() {
        for (text, told) in [
            (
                r#""remote_url": "https://a", "remote_auth_config": {"bearer_token": "t"},
                    "token_exchange_config": {"token_url": "https://t", "audience": "a"}"#,
                "remote_auth_config: the step tokenexchange gives the server another token",
            ),
            (
                r#""middleware_configs": [{"type": "auth"}, {"type": "mcp-parser"}, {"type": "auth"}]"#,
                "middleware_configs has the step auth twice",
            ),
            (
                r#""middleware_configs": [{"type": "authorization"}, {"type": "mutating-webhook"}]"#,
                "authorization: it stands before mutating-webhook",
            ),
            (
                r#""tools_filter": ["a"], "middleware_configs": [{"type": "tool-filter", "parameters": {"filter_tools": ["b"]}},
                    {"type": "tool-call-filter", "parameters": {"filter_tools": ["a"]}}]"#,
                "has tools_filter or tools_override, but the step tool-filter of middleware_configs says something else",
            ),
        ] {
            let said = built(text, &[]).await.unwrap_err();
            assert!(said.contains(told), "{text}: {said}");
        }
    }

    #[tokio::test]
    async fn webhooks_that_would_judge_too_early_are_refused() {
        for (steps, told) in [
            (
                ["validating-webhook", "mutating-webhook"],
                "middleware_configs: validating-webhook: it stands before mutating-webhook, which could change",
            ),
            (
                ["validating-webhook", "auth"],
                "middleware_configs: validating-webhook: it stands before auth, which finds out who calls; put it",
            ),
            (
                ["mutating-webhook", "auth"],
                "middleware_configs: mutating-webhook: it stands before auth, which finds out who calls; put it",
            ),
        ] {
            let steps = steps.map(|step| format!(r#"{{"type": "{step}"}}"#)).join(", ");
            let said = built(&format!(r#""middleware_configs": [{steps}]"#), &[]).await.unwrap_err();
            assert!(said.contains(told), "{steps}: {said}");
        }
    }

    #[tokio::test]
    async fn a_filter_of_tools_without_its_twin_is_refused_wherever_it_is_written() {
        let rules = r#""parameters": {"filter_tools": ["a"]}"#;
        for (step, why) in [
            ("tool-filter", "without tool-call-filter, so the tools that it hides could still be called; add"),
            ("tool-call-filter", "without tool-filter, so lists would show tools that cannot be called; add"),
        ] {
            for list in ["middleware_configs", "additional_middleware_configs"] {
                let said = built(&format!(r#""{list}": [{{"type": "{step}", {rules}}}]"#), &[]).await.unwrap_err();
                assert!(said.contains(&format!("{list}: {step}: it stands there {why}")), "{said}");
            }
        }
    }

    #[tokio::test]
    async fn a_proxy_without_redis_counts_by_itself_unless_there_may_be_others() {
        let limits = r#""rate_limit_config": {"shared": {"maxTokens": 1, "refillPeriod": "1m"}}"#;
        let told = "cannot be used: rate_limit_config: it needs a Redis server to count in; set sessionStorage with provider redis";
        for variable in [("KUBERNETES_SERVICE_HOST", "10.96.0.1"), ("TOOLHIVE_RUNTIME", "kubernetes")] {
            let said = built(limits, &[variable]).await.unwrap_err();
            assert!(said.contains(told), "{said}");
        }
        let chain = built(limits, &[]).await.unwrap();
        assert!(chain.contains("RateLimit") && chain.contains("MemoryBuckets"), "{chain}");
    }

    #[tokio::test]
    async fn a_document_whose_token_is_in_the_environment_asks_for_no_login() {
        let variables = [("TOOLHIVE_REMOTE_AUTH_BEARER_TOKEN", "hunter2")];
        for auth in ["{}", r#"{"issuer": "https://i", "client_id": "c"}"#] {
            let ours = format!(r#""remote_auth_config": {auth}"#);
            let remote = format!(r#""remote_url": "https://a", {ours}"#);
            for text in [&ours, &remote] {
                let said = built(text, &[]).await.unwrap_err();
                assert!(said.contains("cannot do yet: remote_auth_config (a login at the server)"), "{said}");
            }
            let chain = built(&remote, &variables).await.unwrap();
            assert!(chain.contains(r#"{"authorization"}"#) && !chain.contains("hunter2"), "{chain}");
            let chain = built(&ours, &variables).await.unwrap();
            assert!(!chain.contains(r#"{"authorization"}"#), "a server of ours gets none: {chain}");
        }
    }

    #[tokio::test]
    async fn secret_headers_win_and_are_not_told() {
        let text = r#""remote_url": "https://a",
            "header_forward": {"add_plaintext_headers": {"x-a": "plain"}, "add_headers_from_secret": {"X-A": "ID"}}"#;
        let chain = built(text, &[("TOOLHIVE_SECRET_ID", "hunter2")]).await.unwrap();
        assert!(chain.contains("x-a") && !chain.contains("hunter2") && !chain.contains("plain"), "{chain}");
    }
}
