//! The certificates of a control plane: one authority, and an identity for everybody who talks.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

/// The first address of the service range; the server answers to it as `kubernetes.default`.
const KUBERNETES_SERVICE_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("cannot make the certificate of {name}: {source}")]
    Certificate { name: String, source: rcgen::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// A certificate and its key, in PEM form.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// The authority of one control plane.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    pub fn new() -> Result<Self, PkiError> {
        let failed = |source| PkiError::Certificate { name: "the authority".into(), source };
        let mut params = params_for("skep-test-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(failed)?;
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, key).map_err(failed)? })
    }

    /// The authority's own certificate, in PEM form.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// The authority's own identity, with which the controller manager signs requests.
    pub fn identity(&self) -> Identity {
        Identity { certificate: self.issuer.pem(), key: self.issuer.key().serialize_pem() }
    }

    /// A client: Kubernetes takes the common name for the user and the organisation for the group.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, PkiError> {
        let mut params = params_for(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(user, params)
    }

    /// The API server.
    pub fn api_server(&self) -> Result<Identity, PkiError> {
        let mut params = params_for("kube-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
            params.subject_alt_names.push(dns(name)?);
        }
        for address in [Ipv4Addr::LOCALHOST, KUBERNETES_SERVICE_IP] {
            params.subject_alt_names.push(SanType::IpAddress(address.into()));
        }
        self.sign("kube-apiserver", params)
    }

    /// A node: client of the API server, and server of the kubelet API at the given address.
    pub fn node(&self, name: &str, address: IpAddr) -> Result<Identity, PkiError> {
        let mut params = params_for(&format!("system:node:{name}"), Some("system:nodes"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![dns(name)?, SanType::IpAddress(address)];
        self.sign(name, params)
    }

    fn sign(&self, name: &str, mut params: CertificateParams) -> Result<Identity, PkiError> {
        let failed = |source| PkiError::Certificate { name: name.into(), source };
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// The key pair that signs and checks service-account tokens: private and public half, in PEM form.
pub(super) fn service_account_keys() -> Result<(String, String), PkiError> {
    let key =
        KeyPair::generate().map_err(|source| PkiError::Certificate { name: "service accounts".into(), source })?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

fn dns(name: &str) -> Result<SanType, PkiError> {
    let name_in_certificate = name.try_into().map_err(|source| PkiError::Certificate { name: name.into(), source })?;
    Ok(SanType::DnsName(name_in_certificate))
}

fn params_for(common_name: &str, organisation: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organisation) = organisation {
        params.distinguished_name.push(DnType::OrganizationName, organisation);
    }
    // From yesterday, so that a clock that is a little slow does not matter.
    params.not_before = OffsetDateTime::now_utc() - Duration::days(1);
    params.not_after = OffsetDateTime::now_utc() + Duration::days(30);
    params
}

/// A folder of PEM files.
#[derive(Debug)]
pub(super) struct PemFolder(pub(super) PathBuf);

impl PemFolder {
    pub(super) fn write(&self, file: &str, pem: &str) -> Result<PathBuf, PkiError> {
        let path = self.0.join(file);
        fs::write(&path, pem).map_err(|source| PkiError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// Writes `name.crt` and `name.key`.
    pub(super) fn write_identity(&self, name: &str, identity: &Identity) -> Result<(PathBuf, PathBuf), PkiError> {
        Ok((
            self.write(&format!("{name}.crt"), &identity.certificate)?,
            self.write(&format!("{name}.key"), &identity.key)?,
        ))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}
