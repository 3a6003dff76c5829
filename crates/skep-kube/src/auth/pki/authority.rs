//! The authority: its key for as long as the data folder lives, its certificate renewed in time.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::certificate::{Facts, der};
use super::files::Files;
use super::{Identity, PkiError};

const COMMON_NAME: &str = "skep-ca";
const AUTHORITY_LIFE: Duration = Duration::days(10 * 365);
const LEAF_LIFE: Duration = Duration::days(365);
/// Certificates are valid from a little earlier, so that a clock that is slow does not matter.
const CLOCK_TOLERANCE: Duration = Duration::hours(1);

/// What a certificate shall say.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) common_name: String,
    /// One only: that is all that the library can write.
    pub(super) organisation: Option<String>,
    pub(super) names: BTreeSet<String>,
    pub(super) addresses: BTreeSet<IpAddr>,
    pub(super) usages: Vec<ExtendedKeyUsagePurpose>,
}

pub(super) struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    is_new: bool,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    pub(super) fn open(files: &Files, folder: &Path, now: OffsetDateTime) -> Result<Self, PkiError> {
        let (certificate_path, key_path) = (folder.join("ca.crt"), folder.join("ca.key"));
        let (certificate, key) = match (files.read(&certificate_path)?, files.read(&key_path)?) {
            (Some(certificate), Some(key)) => (certificate, key),
            (Some(_), None) => return Err(PkiError::Half { there: certificate_path, missing: key_path }),
            (None, key) => {
                // A key alone is what a crash between the two writes leaves behind; it is as good as a new one.
                let pair = match &key {
                    Some(pem) => pair(&key_path, pem)?,
                    None => new_pair("the authority")?,
                };
                let is_new = key.is_none();
                if is_new {
                    files.write_private(&key_path, &pair.serialize_pem())?;
                }
                return Ok(Self { is_new, ..Self::certify(files, &certificate_path, pair, now)? });
            }
        };
        let unusable = |problem| PkiError::Unusable { path: certificate_path.clone(), problem };
        let facts = Facts::read(&certificate).map_err(unusable)?;
        if !facts.is_authority {
            return Err(unusable("not the certificate of an authority"));
        }
        let pair = pair(&key_path, &key)?;
        if !facts.belongs_to(&key) {
            return Err(PkiError::Unusable { path: key_path, problem: "not the key of the certificate beside it" });
        }
        if facts.is_old(now) {
            return Self::certify(files, &certificate_path, pair, now);
        }
        let issuer = Issuer::from_ca_cert_pem(&certificate, pair).map_err(failed)?;
        Ok(Self { certificate, issuer, is_new: false })
    }

    /// Makes the certificate for the key. The name stays the same, so what the key has signed before stays good.
    fn certify(files: &Files, path: &Path, pair: KeyPair, now: OffsetDateTime) -> Result<Self, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.not_before = now - CLOCK_TOLERANCE;
        params.not_after = now + AUTHORITY_LIFE;
        let certificate = params.self_signed(&pair).map_err(failed)?.pem();
        files.write_public(path, &certificate)?;
        Ok(Self { certificate, issuer: Issuer::new(params, pair), is_new: false })
    }

    /// Whether it was made just now.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Whether this authority's key has signed the certificate.
    pub(super) fn has_signed(&self, certificate: &str) -> bool {
        let (Some(own), Some(other)) = (der(&self.certificate), der(certificate)) else {
            return false;
        };
        let (Ok((_, own)), Ok((_, other))) = (X509Certificate::from_der(&own), X509Certificate::from_der(&other))
        else {
            return false;
        };
        signature_fits(&own, &other)
    }

    pub(super) fn sign(&self, wanted: &Wanted, pair: &KeyPair, now: OffsetDateTime) -> Result<Identity, PkiError> {
        let failed = |source| PkiError::Sign { name: wanted.common_name.clone(), source };
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, wanted.common_name.as_str());
        if let Some(organisation) = &wanted.organisation {
            params.distinguished_name.push(DnType::OrganizationName, organisation.as_str());
        }
        for name in &wanted.names {
            params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into().map_err(failed)?));
        }
        params.subject_alt_names.extend(wanted.addresses.iter().map(|address| SanType::IpAddress(*address)));
        params.extended_key_usages.clone_from(&wanted.usages);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.not_before = now - CLOCK_TOLERANCE;
        params.not_after = now + LEAF_LIFE;
        let certificate = params.signed_by(pair, &self.issuer).map_err(failed)?;
        Ok(Identity { certificate: certificate.pem(), key: pair.serialize_pem() })
    }
}

fn failed(source: rcgen::Error) -> PkiError {
    PkiError::Sign { name: "the authority".to_owned(), source }
}

pub(super) fn new_pair(name: &str) -> Result<KeyPair, PkiError> {
    KeyPair::generate().map_err(|source| PkiError::Sign { name: name.to_owned(), source })
}

pub(super) fn pair(path: &Path, pem: &str) -> Result<KeyPair, PkiError> {
    KeyPair::from_pem(pem)
        .map_err(|_| PkiError::Unusable { path: path.to_owned(), problem: "not a private key in PEM form" })
}

fn signature_fits(authority: &X509Certificate<'_>, leaf: &X509Certificate<'_>) -> bool {
    let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.all;
    let key = authority.public_key().subject_public_key.data.as_ref();
    let (message, signature) = (leaf.tbs_certificate.as_ref(), leaf.signature_value.data.as_ref());
    algorithms.iter().any(|algorithm| algorithm.verify_signature(key, message, signature).is_ok())
}
