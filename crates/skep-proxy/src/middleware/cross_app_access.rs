//! Access across applications (ID-JAG): an identity provider vouches for a caller at the application that a server
//! belongs to, and that one gives a token for it.
//!
//! Nobody is asked twice for what is still good. What somebody says when they refuse is told to nobody.

use http::HeaderValue;
use url::{Host, Url};

use super::grants::kept::MARGIN;
use super::grants::{Bearer, EndpointError, GrantError, Kept, Key, TOKEN_EXCHANGE, TokenEndpoint, form};
use super::identity::Identity;
use super::unverified::Unverified;

const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// What an assertion calls itself.
const TYPE: &str = "oauth-id-jag+jwt";

/// Who is asked, and for what. What is empty is not said.
#[derive(Clone, Default)]
pub struct CrossAppAccessSettings {
    /// Where the identity provider exchanges tokens, and who we are there.
    pub idp_token_url: String,
    pub idp_client_id: String,
    pub idp_client_secret: String,
    /// Where the other application gives tokens, and who we are there.
    pub target_token_url: String,
    pub target_client_id: String,
    pub target_client_secret: String,
    /// Whether the other application may be asked without TLS.
    pub allows_plain_target: bool,
    /// Whom the identity provider vouches at, and for which resource there.
    pub target_audience: String,
    pub target_resource: String,
    /// What the token is to allow.
    pub scopes: Vec<String>,
}

impl std::fmt::Debug for CrossAppAccessSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CrossAppAccessSettings").field("idp", &self.idp_token_url).finish_non_exhaustive()
    }
}

/// Why there can be no access.
#[derive(Debug, thiserror::Error)]
pub enum CrossAppAccessError {
    /// An address is none, or not safe.
    #[error("{field} {problem}")]
    Url {
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An address is where nobody may be asked.
    #[error("{field}: {cause}")]
    Endpoint {
        /// Which one.
        field: &'static str,
        /// Why.
        cause: EndpointError,
    },
    /// Somebody could not know who we are.
    #[error("{0} and its secret must be set together")]
    Pair(&'static str),
    /// Nobody could tell whom the token is for.
    #[error("targetAudience must be set")]
    NoAudience,
}

/// There is no token. Why not is in the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("there is no token for the other application")]
pub struct NoAccess;

/// Gets tokens of another application.
#[derive(Debug)]
pub struct CrossAppAccess {
    idp: TokenEndpoint,
    target: TokenEndpoint,
    kept: Kept<Bearer>,
    audience: String,
    resource: String,
    scope: String,
}

impl CrossAppAccess {
    /// Checks the settings. Nobody is asked yet.
    pub fn new(settings: &CrossAppAccessSettings) -> Result<Self, CrossAppAccessError> {
        let (idp, target) = ("idpTokenUrl", "targetTokenUrl");
        check_url(idp, &settings.idp_token_url, false)?;
        check_url(target, &settings.target_token_url, settings.allows_plain_target)?;
        for (field, client, secret) in [
            ("idpClientId", &settings.idp_client_id, &settings.idp_client_secret),
            ("targetClientId", &settings.target_client_id, &settings.target_client_secret),
        ] {
            if client.is_empty() != secret.is_empty() {
                return Err(CrossAppAccessError::Pair(field));
            }
        }
        if settings.target_audience.is_empty() {
            return Err(CrossAppAccessError::NoAudience);
        }
        let endpoint = |field, url: &str, client: &str, secret: &str| {
            TokenEndpoint::new(url, client, secret).map_err(|cause| CrossAppAccessError::Endpoint { field, cause })
        };
        Ok(Self {
            idp: endpoint(idp, &settings.idp_token_url, &settings.idp_client_id, &settings.idp_client_secret)?,
            target: endpoint(
                target,
                &settings.target_token_url,
                &settings.target_client_id,
                &settings.target_client_secret,
            )?,
            kept: Kept::new(MARGIN),
            audience: settings.target_audience.clone(),
            resource: settings.target_resource.clone(),
            scope: settings.scopes.join(" "),
        })
    }

    /// The `Authorization` that the server gets for somebody, whom an ID token of the identity provider speaks about.
    pub async fn authorization(&self, identity: &Identity, id_token: &str) -> Result<HeaderValue, NoAccess> {
        let question = form(&[
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("subject_token", id_token),
            ("subject_token_type", ID_TOKEN),
            ("audience", &self.audience),
            ("resource", &self.resource),
            ("scope", &self.scope),
        ]);
        let key = Key::of(identity, &[&question]);
        let (idp, target) = (self.idp.clone(), self.target.clone());
        let (audience, resource, scope) = (self.audience.clone(), self.resource.clone(), self.scope.clone());
        let ask = async move {
            let asked = async {
                let vouched = idp.ask(question, &["issued_token_type", "token_type"]).await?;
                if vouched.text("issued_token_type") != ID_JAG {
                    return Err(GrantError::Wrong("issued_token_type"));
                }
                if !vouched.text("token_type").eq_ignore_ascii_case("N_A") {
                    return Err(GrantError::Wrong("token_type"));
                }
                check_assertion(&vouched.token, &audience, &resource)?;
                let question = form(&[("grant_type", JWT_BEARER), ("assertion", &vouched.token), ("scope", &scope)]);
                target.ask(question, &["token_type"]).await?.bearer()
            };
            asked.await.inspect_err(|error| tracing::warn!(%error, "another application gives no token"))
        };
        self.kept.get(key, || ask).await.map(|bearer| bearer.header).map_err(|_| NoAccess)
    }
}

/// Whether an assertion is meant for nobody but the other application. Whether it is genuine, that one finds out.
fn check_assertion(token: &str, audience: &str, resource: &str) -> Result<(), GrantError> {
    let assertion = Unverified::read(token).ok_or(GrantError::Garbage)?;
    if assertion.header.get("typ").is_none_or(|kind| kind != TYPE) {
        tracing::warn!("the identity provider calls its assertion something else than {TYPE}");
    }
    let values = |claim: &str| match assertion.claims.get(claim) {
        Some(serde_json::Value::Array(values)) => values.clone(),
        Some(value) => vec![value.clone()],
        None => Vec::new(),
    };
    if values("aud") != [audience] {
        return Err(GrantError::Wrong("aud"));
    }
    if !resource.is_empty() && !values("resource").iter().any(|value| value == resource) {
        return Err(GrantError::Wrong("resource"));
    }
    Ok(())
}

/// An address is protected by TLS, or on this machine, or may be neither.
fn check_url(field: &'static str, url: &str, allows_plain: bool) -> Result<(), CrossAppAccessError> {
    let wrong = |problem| Err(CrossAppAccessError::Url { field, problem });
    let Ok(url) = Url::parse(url) else { return wrong("is no URL") };
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return wrong("names no host"),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("must not have a user");
    }
    if url.fragment().is_some() {
        return wrong("must not have a fragment");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_local || allows_plain => Ok(()),
        "http" => wrong("must use https"),
        _ => wrong("must use https, or http where that is allowed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_trap_27_nothing_relaxes_the_address_of_the_identity_provider() {
        let told = |idp: &str, target: &str| {
            let settings = CrossAppAccessSettings {
                idp_token_url: idp.to_owned(),
                target_token_url: target.to_owned(),
                allows_plain_target: true,
                target_audience: "https://other.example".to_owned(),
                ..CrossAppAccessSettings::default()
            };
            CrossAppAccess::new(&settings).map(drop).map_err(|error| error.to_string())
        };
        let good = "https://idp.example/token";
        for target in ["https://other.example/t", "http://other.example/t", "http://127.0.0.1:1/t"] {
            assert_eq!(told(good, target), Ok(()), "{target}");
        }
        for idp in ["http://localhost/t", "http://LOCALHOST:8/t", "http://127.0.0.9/t", "http://[::1]:1/t"] {
            assert_eq!(told(idp, good), Ok(()), "{idp}");
        }
        for (idp, target, expected) in [
            ("http://idp.example/t", good, "idpTokenUrl must use https"),
            ("http://localhost.evil.example/t", good, "idpTokenUrl must use https"),
            ("ftp://idp.example/t", good, "idpTokenUrl must use https, or"),
            (good, "ftp://other.example/t", "targetTokenUrl must use https, or"),
            (good, "https://other.example/t#f", "targetTokenUrl must not have a fragment"),
            (good, "http://user@other.example/t", "targetTokenUrl must not have a user"),
            (good, "other", "targetTokenUrl is no URL"),
            (good, "https://169.254.169.254/t", "targetTokenUrl: 169.254.169.254 is at a"),
        ] {
            let said = told(idp, target).unwrap_err();
            assert!(said.starts_with(expected), "{idp} {target}: {said}");
        }
    }

    #[test]
    fn a_client_has_a_secret_and_a_secret_a_client() {
        let settings = CrossAppAccessSettings {
            idp_token_url: "https://idp.example/token".to_owned(),
            target_token_url: "https://other.example/token".to_owned(),
            ..CrossAppAccessSettings::default()
        };
        let told = |settings: CrossAppAccessSettings| CrossAppAccess::new(&settings).unwrap_err().to_string();
        assert_eq!(told(settings.clone()), "targetAudience must be set");
        let alone = "hunter2".to_owned();
        let client = told(CrossAppAccessSettings { idp_client_id: alone.clone(), ..settings.clone() });
        assert_eq!(client, "idpClientId and its secret must be set together");
        let secret = told(CrossAppAccessSettings { target_client_secret: alone, ..settings });
        assert_eq!(secret, "targetClientId and its secret must be set together");
    }
}
