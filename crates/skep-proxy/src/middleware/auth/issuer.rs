//! The endpoints of an issuer, asked with whatever they want to see from us.

use std::path::PathBuf;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};

use crate::fetch::{FetchError, Fetcher};

/// Bytes of a document of an issuer.
pub(super) const LARGEST: usize = 1 << 20;

/// How an issuer is asked.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) fetcher: Fetcher,
    /// A file with a token of ours. It is read every time, because such tokens are replaced.
    pub(super) token_file: Option<PathBuf>,
}

/// Why it could not be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the token for the issuer cannot be read")]
    Token,
}

impl AskError {
    /// What the log is told, with what would help.
    pub(super) fn with_hint(&self) -> String {
        match self {
            Self::Fetch(FetchError::Closed { is_barred: false, .. }) => {
                format!("{self}; set AllowPrivateIP (jwksAllowPrivateIP of an MCPOIDCConfig) to allow it")
            }
            _ => self.to_string(),
        }
    }
}

impl Endpoint {
    /// Sends a request, with our token unless it proves something else.
    pub(super) async fn send(&self, mut request: Request<Bytes>, largest: usize) -> Result<Response<Bytes>, AskError> {
        if let Some(file) = self.token_file.as_ref().filter(|_| !request.headers().contains_key(AUTHORIZATION)) {
            let token = tokio::fs::read_to_string(file).await.map_err(|_| AskError::Token)?;
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| AskError::Token)?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(self.fetcher.send(request, largest).await?)
    }
}
