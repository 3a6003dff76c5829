//! What a client is told that did not prove who it is: RFC 6750 and 9728.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};
use serde_json::json;
use url::Url;

use super::token::TokenError;
use crate::answer::{self, Answer};

/// Why a request proves nothing.
#[derive(Debug)]
pub(super) enum Unproven {
    NoHeader,
    WrongScheme,
    NoToken,
    Token(TokenError),
    /// The token is good, and does not say whose it is.
    Nobody,
}

impl Unproven {
    /// The code, and the words of the header and of the body.
    fn words(&self) -> (&'static str, String, String) {
        let same = |text: &str| ("invalid_request", text.to_owned(), text.to_owned());
        match self {
            Self::NoHeader => same("authorization header required"),
            Self::WrongScheme => same("invalid authorization header format, expected 'Bearer <token>'"),
            Self::NoToken => same("empty token in authorization header"),
            Self::Token(error) => ("invalid_token", error.to_string(), format!("Invalid token: {error}")),
            Self::Nobody => {
                let told = "Invalid authentication claims".to_owned();
                ("invalid_token", told.clone(), told)
            }
        }
    }
}

/// Where a client finds out how to prove who it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Challenge {
    pub(super) realm: String,
    pub(super) resource_metadata: String,
    pub(super) scope: String,
}

impl Challenge {
    /// The answer to a request that proves nothing.
    pub(super) fn answer(&self, unproven: &Unproven) -> Answer {
        let (code, description, told) = unproven.words();
        let body = json!({"error": code, "error_description": told});
        let mut answer = answer::json(StatusCode::UNAUTHORIZED, body.to_string());
        answer.headers_mut().insert(WWW_AUTHENTICATE, self.header(code, &description));
        answer
    }

    fn header(&self, code: &str, description: &str) -> HeaderValue {
        let members = [
            ("realm", self.realm.as_str()),
            ("resource_metadata", &self.resource_metadata),
            ("scope", &self.scope),
            ("error", code),
            ("error_description", description),
        ];
        let members: Vec<String> = members
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}=\"{}\"", quoted(value)))
            .collect();
        let text = format!("Bearer {}", members.join(", "));
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("Bearer"))
    }
}

/// A text between quotes, without what a header cannot hold.
fn quoted(text: &str) -> String {
    let printable = text.chars().map(|letter| if letter.is_ascii_graphic() { letter } else { ' ' });
    printable.collect::<String>().replace('\\', "\\\\").replace('"', "\\\"")
}

/// Where the document about a resource is.
pub(super) fn metadata_url(resource: &str) -> Option<String> {
    let url = Url::parse(resource).ok().filter(|url| url.has_host() && matches!(url.scheme(), "http" | "https"))?;
    let path = if url.path() == "/" { "" } else { url.path() };
    Some(format!("{}{}{path}", url.origin().ascii_serialization(), super::resource::PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(challenge: &Challenge, unproven: &Unproven) -> String {
        challenge.answer(unproven).headers()[WWW_AUTHENTICATE].to_str().unwrap().to_owned()
    }

    #[test]
    fn the_members_have_their_order_and_only_those_that_say_something() {
        let challenge = Challenge {
            realm: "https://i".to_owned(),
            resource_metadata: "https://r/x".to_owned(),
            scope: "openid mcp".to_owned(),
        };
        assert_eq!(
            header(&challenge, &Unproven::NoHeader),
            "Bearer realm=\"https://i\", resource_metadata=\"https://r/x\", scope=\"openid mcp\", \
             error=\"invalid_request\", error_description=\"authorization header required\""
        );
        assert_eq!(
            header(&Challenge::default(), &Unproven::Token(TokenError::Expired)),
            "Bearer error=\"invalid_token\", error_description=\"token is expired\""
        );
    }

    #[test]
    fn auth_trap_11_quotes_do_not_break_the_header() {
        let odd = TokenError::Unknown("say \"hi\\\"\r\nX-Evil: 1");
        let told = header(&Challenge::default(), &Unproven::Token(odd));
        assert!(told.ends_with(r#"error_description="say \"hi\\\"  X-Evil: 1""#), "{told}");
    }

    #[test]
    fn the_document_is_below_the_resource() {
        for (resource, expected) in [
            ("https://hive.example", Some("https://hive.example/.well-known/oauth-protected-resource")),
            ("https://hive.example/", Some("https://hive.example/.well-known/oauth-protected-resource")),
            ("http://hive:8080/mcp", Some("http://hive:8080/.well-known/oauth-protected-resource/mcp")),
            ("https://hive.example/mcp/", Some("https://hive.example/.well-known/oauth-protected-resource/mcp/")),
            ("no url", None),
            ("", None),
        ] {
            assert_eq!(metadata_url(resource).as_deref(), expected, "{resource}");
        }
    }
}
