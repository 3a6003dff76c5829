//! TLS for the server, and who a client is by its certificate.
//!
//! The handshake only proves that the client holds the key of its certificate. Whether the certificate is good is
//! judged by [`ClientCertificates::judge`] for each request, as the real server does it: a bad one is answered with a
//! 401 that clients understand, and one that expires during a long connection stops working.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::identity::Certificate;
use super::pki::Identity;
use super::user::{AUTHENTICATED_GROUP, CREDENTIAL_ID, User};

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the certificate of {0} cannot be read")]
    Certificate(&'static str),
    #[error("the key of the server cannot be read")]
    Key,
    #[error("the authority cannot check client certificates: {0}")]
    Verifier(rustls::server::VerifierBuilderError),
    #[error("the server cannot use its certificate: {0}")]
    Server(rustls::Error),
}

/// What an authority says of client certificates.
#[derive(Debug, Clone)]
pub struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientCertificates {
    /// Judges by the certificate of an authority, in PEM form.
    pub fn new(authority: &str) -> Result<Self, TlsError> {
        let unreadable = TlsError::Certificate("the authority");
        let Ok(authority) = CertificateDer::from_pem_slice(authority.as_bytes()) else {
            return Err(unreadable);
        };
        let mut roots = RootCertStore::empty();
        roots.add(authority).map_err(|_| unreadable)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(TlsError::Verifier)?;
        Ok(Self { verifier })
    }

    /// Who has sent this chain in a handshake, if anybody.
    pub fn judge(&self, chain: Option<&[CertificateDer<'_>]>, now: UnixTime) -> Certificate {
        let Some((certificate, intermediates)) = chain.and_then(<[_]>::split_first) else {
            return Certificate::Absent;
        };
        if self.verifier.verify_client_cert(certificate, intermediates, now).is_err() {
            return Certificate::Bad;
        }
        user_of(certificate).map_or(Certificate::Absent, Certificate::Good)
    }
}

/// TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, with a client certificate if the client has one.
pub fn server_config(server: &Identity, clients: &ClientCertificates) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = CertificateDer::pem_slice_iter(server.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| TlsError::Certificate("the server"))?;
    let key = PrivateKeyDer::from_pem_slice(server.key().as_bytes()).map_err(|_| TlsError::Key)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Server)?
        .with_client_cert_verifier(Arc::new(Possession(Arc::clone(&clients.verifier))))
        .with_single_cert(chain, key)
        .map_err(TlsError::Server)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The user that a certificate names: the common name, with the organisations as groups.
fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = X509Certificate::from_der(certificate.as_ref()).ok()?;
    let name = parsed.subject().iter_common_name().last()?.as_str().ok()?.to_owned();
    if name.is_empty() {
        return None;
    }
    let mut groups: Vec<String> = parsed
        .subject()
        .iter_organization()
        .filter_map(|organisation| organisation.as_str().ok().map(str::to_owned))
        .collect();
    groups.push(AUTHENTICATED_GROUP.to_owned());
    let mut user = User { name, groups, ..User::default() };
    let digest = hex::encode(Sha256::digest(certificate.as_ref()));
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={digest}")]);
    Some(user)
}

/// Lets every certificate through the handshake whose key the client holds; [`ClientCertificates::judge`] comes later.
#[derive(Debug)]
struct Possession(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Possession {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
