//! TLS: what the listener shows to its clients, and whom a connection to a server trusts.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// What clients may speak inside of it, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate cannot be read.
    #[error("the certificate is not PEM that can be read: {0}")]
    Certificate(String),
    /// The private key cannot be read. What is in it is not repeated.
    #[error("the private key is not PEM that can be read")]
    Key,
    /// The two do not belong together, or are of a kind that nobody knows.
    #[error("the certificate cannot be used with the private key: {0}")]
    Mismatch(rustls::Error),
    /// The certificates that this machine trusts cannot be read.
    #[error("cannot read the certificates that this machine trusts: {0}")]
    Trusted(String),
    /// It cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
}

/// The certificate of a listener, with its key.
#[derive(Clone)]
pub struct TlsIdentity(Arc<ServerConfig>);

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TlsIdentity")
    }
}

impl TlsIdentity {
    /// Reads a chain of certificates, the listener's own first, and the private key.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = read_certificates(certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::Key)?;
        let mut config = ServerConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Mismatch)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

/// Certificates, at least one.
pub(crate) fn read_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(TlsError::Certificate("there is none in it".to_owned())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(TlsError::Certificate(error.to_string())),
    }
}

/// The machine's authorities and these.
pub(crate) fn trusted(authorities: &[CertificateDer<'static>]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(loaded.certs);
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    if roots.is_empty() {
        let problem = loaded.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
        return Err(TlsError::Trusted(problem));
    }
    Ok(roots)
}

/// How connections to servers are made that trusts the machine's authorities and these.
pub(crate) fn client(authorities: &[CertificateDer<'static>], is_needed: bool) -> Result<ClientConfig, TlsError> {
    let roots = if is_needed { trusted(authorities)? } else { RootCertStore::empty() };
    Ok(ClientConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_or_no_key_is_told_and_not_repeated() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap().pem();
        let (key, other) = (key.serialize_pem(), rcgen::KeyPair::generate().unwrap().serialize_pem());
        assert!(TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).is_ok());
        let told = |certificate: &str, key: &str| {
            TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err().to_string()
        };
        assert!(told("", &key).contains("there is none in it"));
        assert!(told("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", &key).contains("certificate"));
        assert_eq!(told(&certificate, "a secret"), "the private key is not PEM that can be read");
        assert!(told(&certificate, &other).starts_with("the certificate cannot be used with the private key"));
    }
}
