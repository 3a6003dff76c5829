//! What a server is shown of whom it is called for, as a document and the environment say it.

use std::fmt::Display;
use std::time::Duration;

use skep_api::config::run_config::middleware::TokenExchangeParameters;
use skep_api::config::run_config::{HeaderStrategy, MiddlewareConfig, RemoteAuthConfig};
use skep_api::config::vmcp::outgoing_strategies::Obo;
use skep_api::names::env::runner;
use skep_proxy::middleware::{OnBehalfOf, OnBehalfOfSettings, TokenExchange, TokenExchangeSettings};

use super::mounted::mounted;
use super::{Variables, secrets};

/// Exchanges tokens as an entry says.
pub(super) fn token_exchange(entry: &MiddlewareConfig, variables: Variables<'_>) -> Result<TokenExchange, String> {
    let parameters: TokenExchangeParameters = entry.read_parameters().map_err(text)?;
    let config = parameters.token_exchange_config.ok_or("token_exchange_config is missing")?;
    refuse_provider("subject_provider_name", &config.subject_provider_name)?;
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

/// Acts on behalf of callers as an entry says.
pub(super) fn on_behalf_of(entry: &MiddlewareConfig, variables: Variables<'_>) -> Result<OnBehalfOf, String> {
    let config: Obo = serde_json::from_value(entry.parameters.0.clone()).map_err(text)?;
    let provider = config.subject_token_provider_name.unwrap_or_default();
    refuse_provider("subjectTokenProviderName", &provider)?;
    let named = config.client_secret_env.filter(|name| !name.is_empty());
    let client_secret = match (config.client_secret, named) {
        (Some(secret), _) if !secret.is_empty() => secret.expose().to_owned(),
        (_, Some(name)) => variables(&name)
            .filter(|secret| !secret.is_empty())
            .ok_or_else(|| format!("there is no client secret; set the variable {name}"))?,
        _ => String::new(),
    };
    let client_id = config.client_id.unwrap_or_default();
    if client_id.is_empty() != client_secret.is_empty() {
        return Err("clientId and a client secret must be set together".to_owned());
    }
    let margin = config.cache_skew_seconds.map(|seconds| {
        let seconds = u64::try_from(seconds).map_err(|_| format!("cacheSkewSeconds {seconds} must not be negative"))?;
        Ok::<_, String>(Duration::from_secs(seconds))
    });
    OnBehalfOf::new(&OnBehalfOfSettings {
        token_url: config.token_url,
        client_id,
        client_secret,
        audience: config.audience.unwrap_or_default(),
        scopes: config.scopes,
        margin: margin.transpose()?,
    })
    .map_err(|error| format!("tokenUrl: {error}"))
}

/// Refuses to start from a token that only an auth server would have.
pub(super) fn refuse_provider(member: &str, name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Ok(());
    }
    Err(format!("{member} needs an auth server inside of the proxy, which it cannot have yet"))
}

/// Where the token is that a server of somebody else gets from us. It cannot be printed: it may be the token.
pub(super) enum BearerToken<'a> {
    /// In a secret of this id.
    Secret(&'a str),
    /// Here, as the document has it.
    Written(&'a str),
    /// In a file.
    File(&'a str),
    /// Here, as the environment has it.
    Variable(String),
}

/// Where the document says that the token is, or else the one of the environment.
pub(super) fn bearer_token<'a>(config: &'a RemoteAuthConfig, variables: Variables<'_>) -> Option<BearerToken<'a>> {
    let (reference, file) = (config.bearer_token.expose(), config.bearer_token_file.as_str());
    if let Some((id, _)) = reference.split_once(",target=") {
        return Some(BearerToken::Secret(id));
    }
    if !reference.is_empty() {
        return Some(BearerToken::Written(reference));
    }
    if !file.is_empty() {
        return Some(BearerToken::File(file));
    }
    let token = variables(runner::REMOTE_AUTH_BEARER_TOKEN)?.trim().to_owned();
    (!token.is_empty()).then_some(BearerToken::Variable(token))
}

impl BearerToken<'_> {
    /// The token itself. Where it is said to be it has to be: another one might be good for more.
    pub(super) fn read(self, variables: Variables<'_>) -> Result<String, String> {
        match self {
            Self::Secret(id) => {
                secrets::find(id, variables).map_err(|missing| format!("there is no bearer token; {missing}"))
            }
            Self::Written(token) => {
                tracing::warn!("remote_auth_config.bearer_token is written in the document, where many can read it");
                Ok(token.to_owned())
            }
            Self::File(path) => secrets::read_file(&mounted(path, variables))
                .map_err(|cause| format!("bearer_token_file: {cause}; the token has to be in that file")),
            Self::Variable(token) => Ok(token),
        }
    }
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
            ("subject_provider_name", json!("github"), "subject_provider_name needs an auth server"),
            ("token_url", json!("no address"), "token_url: \"no address\" is no address"),
            ("token_url", json!("nope"), "token_url: nope is no address of the form https://HOST"),
            ("token_url", json!("ftp://login.example"), "token_url: ftp://login.example/ is no address"),
            ("token_url", json!("http://169.254.169.254/"), "token_url: 169.254.169.254 is at a"),
            ("token_url", json!("http://u:hunter2@a/"), "token_url: the address at a carries a user name"),
            ("token_url", json!("http://u:hunter2 @a/"), "token_url: \"http://a/\" is no address"),
        ] {
            let said = exchanging(member, value).unwrap_err();
            assert!(said.contains(told) && !said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_token_is_put_only_where_a_token_can_be() {
        let put = |header: &str| {
            let config = json!({"token_url": "https://login.example/token", "header_strategy": "custom",
                "external_token_header_name": header});
            let entry = MiddlewareConfig::new(MiddlewareType::TokenExchange, &json!({"token_exchange_config": config}));
            token_exchange(&entry.unwrap(), &|_| None).map(drop)
        };
        assert_eq!(put("X-Upstream-Token"), Ok(()));
        for header in ["Host", "content-length", "Transfer-Encoding", "Connection", "Content-Type", "Mcp-Session-Id"] {
            let said = put(header).unwrap_err();
            assert!(said.starts_with(&format!("external_token_header_name: the header {header} cannot")), "{said}");
        }
    }

    fn acting(member: &str, value: Value) -> Result<String, String> {
        let mut config = json!({"tokenUrl": "https://login.example/token", "clientId": "proxy",
            "clientSecretEnv": "TOOLHIVE_OBO_CLIENT_SECRET"});
        config[member] = value;
        let entry = MiddlewareConfig::new(MiddlewareType::Obo, &config).unwrap();
        let known = |name: &str| (name == runner::ON_BEHALF_OF_CLIENT_SECRET).then(|| "hunter2".to_owned());
        on_behalf_of(&entry, &known).map(|made| format!("{made:?}"))
    }

    #[test]
    fn what_is_wrong_with_acting_for_others_is_named_and_no_secret_is() {
        let made = acting("cacheSkewSeconds", json!(90)).unwrap();
        assert!(made.contains("90s") && !made.contains("hunter2"), "{made}");
        for (member, value, told) in [
            ("tokenUrl", json!("no address"), "tokenUrl: \"no address\" is no address"),
            ("tokenUrl", json!("http://169.254.169.254/"), "tokenUrl: 169.254.169.254 is at a"),
            ("clientId", json!(""), "must be set together"),
            ("clientSecretEnv", json!("OTHER"), "set the variable OTHER"),
            ("clientSecretEnv", json!(""), "must be set together"),
            ("cacheSkewSeconds", json!(-1), "cacheSkewSeconds -1"),
            ("subjectTokenProviderName", json!("github"), "needs an auth server"),
            ("scopes", json!(7), "invalid type"),
        ] {
            let said = acting(member, value).unwrap_err();
            assert!(said.contains(told) && !said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_bearer_token_is_found_under_its_names() {
        let token = |reference: &str, known: &str| {
            let config = RemoteAuthConfig { bearer_token: reference.into(), ..RemoteAuthConfig::default() };
            let variables = |name: &str| (name == known).then(|| "t".to_owned());
            bearer_token(&config, &variables).map(|token| token.read(&variables)).transpose()
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

    #[test]
    fn a_bearer_token_in_a_file_or_in_the_environment_is_no_login() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let token = |reference: &str, file: &str, variable: &str| {
            let config = RemoteAuthConfig {
                bearer_token: reference.into(),
                bearer_token_file: file.to_owned(),
                ..RemoteAuthConfig::default()
            };
            let variables = |name: &str| match name {
                runner::REMOTE_AUTH_BEARER_TOKEN => Some(variable.to_owned()),
                "TOOLHIVE_SECRET_own" => Some("of the secret".to_owned()),
                _ => None,
            };
            bearer_token(&config, &variables).map(|token| token.read(&variables)).transpose()
        };
        let (full, blank) = (file("full", "of the file\n \n"), file("blank", " \n"));
        let (full, blank) = (full.as_str(), blank.as_str());
        for (reference, file, variable, expected) in [
            ("own,target=bearer_token", full, "of the variable", "of the secret"),
            ("of the document", full, "of the variable", "of the document"),
            ("", full, "of the variable", "of the file"),
            ("", "", "of the variable\n", "of the variable"),
        ] {
            assert_eq!(token(reference, file, variable), Ok(Some(expected.to_owned())), "{reference} {file}");
        }
        assert_eq!(token("", "", " \n"), Ok(None));
        // What is said to be there and is not is no reason to take another one.
        let missing = token("other,target=bearer_token", full, "of the variable").unwrap_err();
        assert!(missing.contains("set the variable TOOLHIVE_SECRET_other"), "{missing}");
        for (path, told) in [(blank, "is empty"), ("/no/such/file", "cannot be read: ")] {
            let said = token("", path, "of the variable").unwrap_err();
            assert!(said.starts_with(&format!("bearer_token_file: {path} {told}")), "{said}");
        }
    }
}
