//! Headers that the server gets from us, whatever the client says.

use std::collections::BTreeMap;
use std::fmt;

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use skep_bounds::headers::{OF_MESSAGES, OF_THE_WAY};

use super::exchange::Exchange;
use super::layer::{Layer, Next};
use crate::answer::Answer;
use crate::eras::holder::CREDENTIALS;
use crate::transparent::strip_headers;

/// The header of a name, if it is for anybody to set.
fn settable(name: &str) -> Result<HeaderName, ForwardError> {
    let known = name.to_ascii_lowercase();
    if OF_THE_WAY.contains(&known.as_str()) {
        return Err(ForwardError::Reserved(name.to_owned()));
    }
    known.parse().map_err(|_| ForwardError::Name(name.to_owned()))
}

/// The header of a name, if a credential can be there.
pub(super) fn for_credential(name: &str) -> Result<HeaderName, ForwardError> {
    let header = settable(name)?;
    if OF_MESSAGES.contains(&header.as_str()) {
        return Err(ForwardError::OfMessages(name.to_owned()));
    }
    Ok(header)
}

/// Why a header cannot be set. What its value was is not repeated.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// It belongs to the proxy.
    #[error("the header {0} cannot be set: it says how a message travels, which the proxy decides")]
    Reserved(String),
    /// It belongs to the message.
    #[error("the header {0} cannot hold a credential: it says what a message is")]
    OfMessages(String),
    /// Its name is none.
    #[error("{0:?} is no name of a header")]
    Name(String),
    /// Its value has characters that a header cannot hold.
    #[error("the value of the header {0} has characters that a header cannot hold")]
    Value(String),
}

/// Which of the headers with credentials are ours, and say nothing about the client.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ours([bool; CREDENTIALS.len()]);

impl Ours {
    /// Those among headers that we set.
    fn of(headers: &[(HeaderName, HeaderValue)]) -> Self {
        Self(std::array::from_fn(|place| headers.iter().any(|(name, _)| *name == CREDENTIALS[place])))
    }

    fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|place| self.0[place] || other.0[place]))
    }

    pub(crate) fn contain(self, name: &HeaderName) -> bool {
        CREDENTIALS.iter().zip(self.0).any(|(credential, is_ours)| is_ours && credential == name)
    }
}

/// The headers.
#[derive(Clone)]
pub struct ForwardHeaders {
    headers: Vec<(HeaderName, HeaderValue)>,
    ours: Ours,
}

/// Values are secrets.
impl fmt::Debug for ForwardHeaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.headers.iter().map(|(name, _)| name)).finish()
    }
}

impl ForwardHeaders {
    /// Headers by their names.
    pub fn new(headers: &BTreeMap<String, String>) -> Result<Self, ForwardError> {
        let read = |(name, value): (&String, &String)| {
            let header = settable(name)?;
            if header == AUTHORIZATION {
                tracing::warn!("the server gets a fixed Authorization header instead of the client's own");
            }
            let mut value = HeaderValue::from_str(value).map_err(|_| ForwardError::Value(name.clone()))?;
            value.set_sensitive(true);
            Ok((header, value))
        };
        let headers = headers.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { ours: Ours::of(&headers), headers })
    }
}

impl Layer for ForwardHeaders {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        let headers = &mut exchange.parts.headers;
        // A client could call one of these a matter between neighbours, and have it removed later on.
        strip_headers(headers);
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        if self.ours.0.contains(&true) {
            let others = exchange.parts.extensions.get::<Ours>().copied().unwrap_or_default();
            exchange.parts.extensions.insert(self.ours.and(others));
        }
        next.pass(exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &str, value: &str) -> Result<ForwardHeaders, String> {
        let headers = [(name.to_owned(), value.to_owned())].into();
        ForwardHeaders::new(&headers).map_err(|error| error.to_string())
    }

    #[test]
    fn what_the_proxy_decides_cannot_be_set() {
        for name in OF_THE_WAY.into_iter().chain(["Host", "X-Real-IP", "HTTP2-Settings", "a b", ""]) {
            let told = headers(name, "v").unwrap_err();
            assert!(told.contains(name), "{told}");
        }
        assert!(headers("Authorization", "Bearer t").is_ok());
    }

    #[test]
    fn no_credential_is_where_something_else_is_said() {
        for name in OF_THE_WAY.into_iter().chain(OF_MESSAGES).chain(["Mcp-Session-Id", "Content-Length", "a b", ""]) {
            let told = for_credential(name).unwrap_err().to_string();
            assert!(told.contains(name), "{told}");
        }
        assert_eq!(for_credential("X-Upstream-Token").unwrap(), "x-upstream-token");
    }

    #[test]
    fn trap_58_values_are_not_told() {
        assert!(!format!("{:?}", headers("X-Key", "hunter2").unwrap()).contains("hunter2"));
        assert!(!headers("X-Key", "hunter2\n").unwrap_err().contains("hunter2"));
    }
}
