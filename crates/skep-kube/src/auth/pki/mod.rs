//! The certificates of a server: an authority of its own, made once and kept in the data folder, and what it signs.
//!
//! | file | what |
//! |---|---|
//! | `pki/ca.crt`, `pki/ca.key` | the authority; the certificate is renewed with the same key when it gets old |
//! | `pki/server.crt`, `pki/server.key` | the server, for its names and addresses; renewed when they change or it gets old |
//! | `pki/admin.crt`, `pki/admin.key` | a member of `system:masters`, for the kubeconfig |
//! | `pki/service-accounts.key` | signs service-account tokens |
//!
//! Files that this authority did not make are never replaced. Keys are readable by their owner only.

mod authority;
mod certificate;
mod files;
mod kubeconfig;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::ExtendedKeyUsagePurpose;
use time::OffsetDateTime;

use super::tokens::{KeyError, SigningKey};
use super::user::{MASTERS_GROUP, NODE_USER_PREFIX, NODES_GROUP};
use authority::{Authority, Wanted};
use certificate::Facts;
use files::Files;

/// The user of the kubeconfig.
const ADMIN_USER: &str = "skep-admin";

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is there without {}; put it back, or move both away to begin anew", there.display(), missing.display())]
    Half { there: PathBuf, missing: PathBuf },
    #[error("{}: {problem}", path.display())]
    Unusable { path: PathBuf, problem: &'static str },
    #[error("{} is not from this server's authority; move it away to have it made anew", path.display())]
    Foreign { path: PathBuf },
    #[error("{} cannot be read as a kubeconfig: {problem}; mend it, or move it away to have it made anew", path.display())]
    Kubeconfig { path: PathBuf, problem: String },
    #[error("cannot make the certificate of {name}: {source}")]
    Sign { name: String, source: rcgen::Error },
    #[error("{}: {source}", path.display())]
    SigningKey { path: PathBuf, source: KeyError },
}

/// A certificate and its key, in PEM form.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    key: String,
}

impl Identity {
    pub fn new(certificate: String, key: String) -> Self {
        Self { certificate, key }
    }

    /// The private key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The certificates of one data folder.
#[derive(Debug)]
pub struct Pki {
    folder: PathBuf,
    files: Files,
    authority: Authority,
    now: OffsetDateTime,
}

impl Pki {
    /// Opens the authority of a data folder, or makes it.
    pub fn open(data_folder: &Path) -> Result<Self, PkiError> {
        Self::open_at(data_folder, OffsetDateTime::now_utc())
    }

    fn open_at(data_folder: &Path, now: OffsetDateTime) -> Result<Self, PkiError> {
        let pki = Self::prepare_at(data_folder, now)?;
        pki.save()?;
        Ok(pki)
    }

    /// The same without writing anything, here or in what is asked of it, before it is saved.
    pub fn prepare(data_folder: &Path) -> Result<Self, PkiError> {
        Self::prepare_at(data_folder, OffsetDateTime::now_utc())
    }

    fn prepare_at(data_folder: &Path, now: OffsetDateTime) -> Result<Self, PkiError> {
        let (folder, files) = (folder_in(data_folder), Files::held());
        let authority = Authority::open(&files, &folder, now)?;
        Ok(Self { folder, files, authority, now })
    }

    /// Writes what has been made. From now on, that is done at once.
    pub fn save(&self) -> Result<(), PkiError> {
        self.files.release()
    }

    /// Whether there was no authority before.
    pub fn is_new(&self) -> bool {
        self.authority.is_new()
    }

    /// The certificate of the authority, in PEM form, which clients must trust.
    pub fn authority_certificate(&self) -> &str {
        self.authority.certificate()
    }

    /// The server's identity for these names and addresses.
    pub fn server(&self, names: &[String], addresses: &[IpAddr]) -> Result<Identity, PkiError> {
        let wanted = Wanted {
            common_name: "kube-apiserver".to_owned(),
            organisation: None,
            names: names.iter().cloned().collect(),
            addresses: addresses.iter().copied().collect(),
            usages: vec![ExtendedKeyUsagePurpose::ServerAuth],
        };
        self.kept("server", &wanted)
    }

    /// The identity of the administrator, who may do everything.
    pub fn admin(&self) -> Result<Identity, PkiError> {
        self.kept("admin", &client(ADMIN_USER, Some(MASTERS_GROUP)))
    }

    /// A new identity for a client. It is not kept.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, PkiError> {
        self.sign(&client(user, group))
    }

    /// A new identity for a node, which is a client of the API server and a server itself. It is not kept.
    pub fn node(&self, name: &str, addresses: &[IpAddr]) -> Result<Identity, PkiError> {
        let mut wanted = client(&format!("{NODE_USER_PREFIX}{name}"), Some(NODES_GROUP));
        wanted.names.insert(name.to_owned());
        wanted.addresses.extend(addresses);
        wanted.usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        self.sign(&wanted)
    }

    /// The key that signs service-account tokens, made when there is none.
    pub fn service_account_key(&self) -> Result<SigningKey, PkiError> {
        let path = self.folder.join("service-accounts.key");
        let failed = |source| PkiError::SigningKey { path: path.clone(), source };
        if let Some(pem) = self.files.read(&path)? {
            return SigningKey::from_pem(&pem).map_err(failed);
        }
        let key = SigningKey::generate().map_err(failed)?;
        self.files.write_private(&path, key.to_pem())?;
        Ok(key)
    }

    /// Writes the administrator's kubeconfig for a server at `server`, or puts it into the one that is there, beside what
    /// others have put there.
    ///
    /// One that cannot be read, or that has a cluster of our name with another authority, is left alone, and an error.
    pub fn write_kubeconfig(&self, path: &Path, server: &str) -> Result<(), PkiError> {
        let admin = self.admin()?;
        kubeconfig::write(&self.files, path, server, self.authority.certificate(), &admin)
    }

    /// The identity in `name.crt` and `name.key` if it fits what is wanted, else one with a new certificate.
    ///
    /// The key stays what it is, so that there is one file to replace and no moment at which the two do not fit.
    fn kept(&self, name: &str, wanted: &Wanted) -> Result<Identity, PkiError> {
        let certificate_path = self.folder.join(format!("{name}.crt"));
        let key_path = self.folder.join(format!("{name}.key"));
        let key = match (self.files.read(&certificate_path)?, self.files.read(&key_path)?) {
            (Some(_), None) => return Err(PkiError::Half { there: certificate_path, missing: key_path }),
            (Some(certificate), Some(key)) => {
                let unusable = |problem| PkiError::Unusable { path: certificate_path.clone(), problem };
                let facts = Facts::read(&certificate).map_err(unusable)?;
                if !self.authority.has_signed(&certificate) {
                    return Err(PkiError::Foreign { path: certificate_path });
                }
                if !facts.belongs_to(&key) {
                    let problem = "not the key of the certificate beside it";
                    return Err(PkiError::Unusable { path: key_path, problem });
                }
                if facts.fits(wanted) && !facts.is_old(self.now) {
                    return Ok(Identity { certificate, key });
                }
                Some(key)
            }
            // A key alone is what a crash between the two first writes leaves behind.
            (None, key) => key,
        };
        let pair = match &key {
            Some(pem) => authority::pair(&key_path, pem)?,
            None => authority::new_pair(&wanted.common_name)?,
        };
        let identity = self.authority.sign(wanted, &pair, self.now)?;
        if key.is_none() {
            self.files.write_private(&key_path, &identity.key)?;
        }
        self.files.write_public(&certificate_path, &identity.certificate)?;
        Ok(identity)
    }

    /// Signs with a key of its own.
    fn sign(&self, wanted: &Wanted) -> Result<Identity, PkiError> {
        self.authority.sign(wanted, &authority::new_pair(&wanted.common_name)?, self.now)
    }
}

/// Where the certificates of a data folder are.
pub fn folder_in(data_folder: &Path) -> PathBuf {
    data_folder.join("pki")
}

fn client(user: &str, group: Option<&str>) -> Wanted {
    Wanted {
        common_name: user.to_owned(),
        organisation: group.map(str::to_owned),
        names: BTreeSet::new(),
        addresses: BTreeSet::new(),
        usages: vec![ExtendedKeyUsagePurpose::ClientAuth],
    }
}
