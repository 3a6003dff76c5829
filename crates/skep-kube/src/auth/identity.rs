//! Who sends a request: a client certificate, else a bearer token, else nobody in particular.

use super::tokens::{BoundObjects, TokenAuthority};
use super::user::User;
use crate::status::ApiError;

/// Credentials were given, and they are no good. The client learns nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Unauthorized")]
pub struct Unauthorized;

impl From<Unauthorized> for ApiError {
    fn from(_: Unauthorized) -> Self {
        Self::unauthorized()
    }
}

/// The client certificate of a request, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificate {
    /// There is none, or it names nobody.
    Absent,
    Good(User),
    /// Not from our authority, expired, or not for clients.
    Bad,
}

/// The user of a request. A good certificate counts before the Authorization header, a bad one spoils a request
/// that has no token.
pub fn authenticate(
    certificate: &Certificate,
    authorization: Option<&str>,
    tokens: &TokenAuthority,
    objects: &dyn BoundObjects,
    now: i64,
) -> Result<User, Unauthorized> {
    if let Certificate::Good(user) = certificate {
        return Ok(user.clone());
    }
    let Some(token) = authorization.and_then(bearer_token) else {
        return if *certificate == Certificate::Bad { Err(Unauthorized) } else { Ok(User::anonymous()) };
    };
    let verified = tokens.verify(token, &[], objects, now).map_err(|_| Unauthorized)?;
    Ok(verified.user)
}

/// The token of an Authorization header. Other schemes, and a scheme without a token, are no credentials at all.
pub fn bearer_token(authorization: &str) -> Option<&str> {
    let mut parts = authorization.trim().split(' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_credentials_count() {
        assert_eq!(bearer_token("Bearer abc"), Some("abc"));
        assert_eq!(bearer_token(" bearer abc "), Some("abc"));
        assert_eq!(bearer_token("BEARER abc def"), Some("abc"));
        for none in ["", "Bearer", "Bearer ", "Bearer  abc", "Basic abc", "abc", "Bearerabc"] {
            assert_eq!(bearer_token(none), None, "{none:?}");
        }
    }
}
