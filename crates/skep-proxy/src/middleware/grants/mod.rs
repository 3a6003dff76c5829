//! Credentials for the server that somebody else gives for the caller's: how they are asked for, and how long they are
//! kept. What an endpoint says when it refuses is told to nobody.

pub(super) mod endpoint;
pub(super) mod kept;

use http::HeaderName;
use http::header::AUTHORIZATION;
use http::request::Parts;

pub use self::endpoint::EndpointError;
pub(super) use self::endpoint::{Bearer, GrantError, TokenEndpoint};
pub(super) use self::kept::{Given, Kept, Key};
use super::good_until;
use super::refusal::Refusal;
use crate::transparent::strip_headers;

/// A token for a token (RFC 8693).
pub(super) const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The type of tokens that are given and taken, unless something else is said.
pub(super) const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

impl From<GrantError> for Refusal {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Unsendable => Self::TokenNotPlaced,
            _ => Self::TokenNotExchanged,
        }
    }
}

/// A form, without what is empty.
pub(super) fn form(pairs: &[(&str, &str)]) -> String {
    let said = pairs.iter().filter(|(_, value)| !value.is_empty());
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(said).finish()
}

/// Gives the server a credential of its own, and nothing that was meant for us.
pub(super) fn place(request: &mut Parts, name: &HeaderName, bearer: Bearer) {
    let headers = &mut request.headers;
    // A client could call the header a matter between neighbours, and have it removed later on.
    strip_headers(headers);
    headers.remove(AUTHORIZATION);
    headers.insert(name, bearer.header);
    good_until::note(&mut request.extensions, bearer.until);
    request.extensions.get_or_insert_default::<Placed>().0.push(name.clone());
}

/// The headers of a request with credentials that were given for the caller's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placed(Vec<HeaderName>);

impl Placed {
    pub(crate) fn contains(&self, name: &HeaderName) -> bool {
        self.0.contains(name)
    }
}
