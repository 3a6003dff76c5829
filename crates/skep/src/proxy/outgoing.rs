//! What a server is shown of whom it is called for, as a document and the environment say it.

use std::fmt::Display;

use skep_api::config::run_config::middleware::TokenExchangeParameters;
use skep_api::config::run_config::{HeaderStrategy, MiddlewareConfig, RemoteAuthConfig};
use skep_api::names::env::runner;
use skep_proxy::middleware::{TokenExchange, TokenExchangeSettings};

use super::{Variables, secrets};

/// Exchanges tokens as an entry says.
pub(super) fn token_exchange(entry: &MiddlewareConfig, variables: Variables<'_>) -> Result<TokenExchange, String> {
    let parameters: TokenExchangeParameters = entry.read_parameters().map_err(text)?;
    let config = parameters.token_exchange_config.ok_or("token_exchange_config is missing")?;
    let header = match &config.header_strategy {
        HeaderStrategy::Replace => None,
        HeaderStrategy::Other(other) if other.is_empty() => None,
        HeaderStrategy::Custom if config.external_token_header_name.is_empty() => {
            return Err("header_strategy is custom, and external_token_header_name is not set".to_owned());
        }
        HeaderStrategy::Custom => Some(config.external_token_header_name),
        HeaderStrategy::Other(other) => {
            return Err(format!("header_strategy {other:?} must be replace or custom"));
        }
    };
    let client_secret = match config.client_secret.expose() {
        "" => variables(runner::TOKEN_EXCHANGE_CLIENT_SECRET).unwrap_or_default(),
        secret => secret.to_owned(),
    };
    TokenExchange::new(TokenExchangeSettings {
        token_url: config.token_url,
        client_id: config.client_id,
        client_secret,
        audience: config.audience,
        scopes: config.scopes,
        subject_token_type: config.subject_token_type,
        header,
    })
    .map_err(text)
}

/// The token that a server of somebody else gets from us: the value of a secret, or a text in the document.
pub(super) fn bearer_token(config: &RemoteAuthConfig, variables: Variables<'_>) -> Result<Option<String>, String> {
    let reference = config.bearer_token.expose();
    if reference.is_empty() {
        return Ok(None);
    }
    let Some((id, _)) = reference.split_once(",target=") else {
        tracing::warn!("remote_auth_config.bearer_token is written in the document, where many can read it");
        return Ok(Some(reference.to_owned()));
    };
    secrets::find(id, variables).map(Some).map_err(|missing| format!("there is no bearer token; {missing}"))
}

fn text(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::config::run_config::MiddlewareType;

    use super::*;

    fn exchanging(member: &str, value: Value) -> Result<String, String> {
        let mut config = json!({"token_url": "https://login.example/token", "client_id": "proxy", "client_secret": "",
            "audience": "backend", "header_strategy": "replace"});
        config[member] = value;
        let entry = MiddlewareConfig::new(MiddlewareType::TokenExchange, &json!({"token_exchange_config": config}));
        token_exchange(&entry.unwrap(), &|_| Some("hunter2".to_owned())).map(|made| format!("{made:?}"))
    }

    #[test]
    fn what_is_wrong_with_an_exchange_is_named_and_no_secret_is() {
        assert!(!exchanging("scopes", json!(["read"])).unwrap().contains("hunter2"));
        assert!(exchanging("header_strategy", json!("")).is_ok());
        for (member, value, told) in [
            ("header_strategy", json!("custom"), "external_token_header_name is not set"),
            ("header_strategy", json!("append"), "header_strategy \"append\" must be"),
            ("token_url", json!("no address"), "token_url: \"no address\" is no address"),
            ("token_url", json!("ftp://login.example"), "token_url: ftp://login.example/ is no address"),
            ("token_url", json!("http://169.254.169.254/"), "token_url: 169.254.169.254 is at a"),
        ] {
            let said = exchanging(member, value).unwrap_err();
            assert!(said.contains(told) && !said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_bearer_token_is_found_under_its_names() {
        let token = |reference: &str, known: &str| {
            let config = RemoteAuthConfig { bearer_token: reference.into(), ..RemoteAuthConfig::default() };
            bearer_token(&config, &|name| (name == known).then(|| "t".to_owned()))
        };
        for known in
            ["TOOLHIVE_SECRET_my-token", "TOOLHIVE_SECRET_MY_TOKEN", "TOOLHIVE_SECRET___thv_workloads_my-token"]
        {
            assert_eq!(token("my-token,target=bearer_token", known), Ok(Some("t".to_owned())), "{known}");
        }
        assert!(token("my-token,target=bearer_token", "").unwrap_err().contains("TOOLHIVE_SECRET_my-token"));
        assert_eq!(token("plain", ""), Ok(Some("plain".to_owned())));
        assert_eq!(token("", ""), Ok(None));
    }
}
