//! How a callback knows that it is us: a signature over the time and the body.

use std::path::PathBuf;
use std::{fmt, io};

use aws_lc_rs::hmac;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use time::OffsetDateTime;

const TIMESTAMP: HeaderName = HeaderName::from_static("x-toolhive-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-toolhive-signature");

/// Where the key of signatures is.
#[derive(Clone)]
pub enum Secret {
    /// In a file, which is read for every call, so that a new key counts at once. Every byte of it belongs to the key.
    File(PathBuf),
    /// Here.
    Value(Vec<u8>),
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Self::Value(_) => formatter.write_str("Value"),
        }
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the key of the signature from {0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// There is nothing in it.
    #[error("the key of the signature is empty")]
    Empty,
}

impl Secret {
    /// The key as it is now.
    pub(super) fn read(&self) -> Result<hmac::Key, SecretError> {
        let bytes = match self {
            Self::Value(bytes) => bytes.clone(),
            Self::File(path) => std::fs::read(path).map_err(|error| SecretError::Unreadable(path.clone(), error))?,
        };
        if bytes.is_empty() {
            return Err(SecretError::Empty);
        }
        Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
    }
}

/// Signs a request that is sent now.
pub(super) fn sign(request: &mut Request<Bytes>, key: &hmac::Key, now: OffsetDateTime) {
    let seconds = now.unix_timestamp();
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{seconds}.").as_bytes());
    context.update(request.body());
    let signature = format!("sha256={}", hex::encode(context.sign()));
    let headers = request.headers_mut();
    headers.insert(TIMESTAMP, HeaderValue::from(seconds));
    // Hexadecimal digits are always a header.
    if let Ok(signature) = HeaderValue::from_str(&signature) {
        headers.insert(SIGNATURE, signature);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_and_the_body_are_signed() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"hunter2");
        let mut request = Request::new(Bytes::from_static(b"{}"));
        sign(&mut request, &key, OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap());
        let headers = request.headers();
        assert_eq!(headers[TIMESTAMP], "1700000000");
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac hunter2
        assert_eq!(headers[SIGNATURE], "sha256=ff2f975170d2a2ea3d6177dad44d002ac729fec15c2e1053dc096496e07f8401");
    }

    #[test]
    fn trap_53_a_key_in_a_file_is_read_again_and_an_empty_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hmac");
        let secret = Secret::File(path.clone());
        assert!(matches!(secret.read(), Err(SecretError::Unreadable(..))));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(secret.read(), Err(SecretError::Empty)));
        let signed = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            hex::encode(hmac::sign(&secret.read().unwrap(), b"x"))
        };
        assert_ne!(signed(b"one"), signed(b"two\n"));
        assert_eq!(format!("{:?}", Secret::Value(b"hunter2".to_vec())), "Value");
    }
}
