//! What TLS is made of, in files that somebody else may replace. They are small and looked at in passing.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::tls::{self, TlsError};

/// Where the parts of TLS are.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// Whom to trust instead of those whom this machine trusts.
    pub authorities: Option<PathBuf>,
    /// Our own certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether everybody is trusted.
    pub is_unverified: bool,
}

/// Why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// One cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// What is in one is of no use.
    #[error("{0}: {1}")]
    Unusable(PathBuf, TlsError),
    /// They do not give TLS together.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// By what changed files are known: for each its place, size and time.
pub(super) type Stamp = [Option<(u64, u64, i64, i64)>; 3];

impl TlsFiles {
    fn paths(&self) -> [Option<&Path>; 3] {
        let (certificate, key) = self.identity.as_ref().map(|(certificate, key)| (&**certificate, &**key)).unzip();
        [self.authorities.as_deref(), certificate, key]
    }

    /// The files as they are now.
    pub(super) fn stamp(&self) -> Stamp {
        let mut stamp = Stamp::default();
        for (place, path) in stamp.iter_mut().zip(self.paths()) {
            let Some(path) = path else { continue };
            let found = std::fs::metadata(path).ok();
            *place = found.map(|file| (file.ino(), file.size(), file.mtime(), file.mtime_nsec()));
        }
        stamp
    }

    /// How connections are made with what is in the files now. Where there need not be TLS, this machine need not trust
    /// anybody.
    pub(super) fn config(&self, is_needed: bool) -> Result<ClientConfig, FilesError> {
        let provider = Arc::new(default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(TlsError::from)?;
        let builder = if self.is_unverified {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        } else {
            builder.with_root_certificates(self.roots(is_needed)?)
        };
        let Some((certificate, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let chain = read_certificates(certificate)?;
        let secret =
            PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| FilesError::Unusable(key.clone(), TlsError::Key))?;
        builder
            .with_client_auth_cert(chain, secret)
            .map_err(|error| FilesError::Unusable(certificate.clone(), TlsError::Mismatch(error)))
    }

    fn roots(&self, is_needed: bool) -> Result<RootCertStore, FilesError> {
        let Some(path) = &self.authorities else {
            return match tls::trusted(&[]) {
                Err(_) if !is_needed => Ok(RootCertStore::empty()),
                trusted => Ok(trusted?),
            };
        };
        let mut roots = RootCertStore::empty();
        for authority in read_certificates(path)? {
            roots.add(authority).map_err(|error| FilesError::Unusable(path.clone(), error.into()))?;
        }
        Ok(roots)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FilesError> {
    std::fs::read(path).map_err(|error| FilesError::Unreadable(path.to_owned(), error))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FilesError> {
    tls::read_certificates(&read(path)?).map_err(|error| FilesError::Unusable(path.to_owned(), error))
}

/// Believes everybody, because somebody asked for it. That the other end holds the key of its certificate is still
/// checked.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
