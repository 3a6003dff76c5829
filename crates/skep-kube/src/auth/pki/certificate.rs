//! What a certificate says, as far as we need to know whether it still does.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rcgen::{ExtendedKeyUsagePurpose, KeyPair, PublicKeyData as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::authority::Wanted;

/// A certificate with less than this part of its life left is renewed.
const RENEWAL_PART: i32 = 5;

#[derive(Debug)]
pub(super) struct Facts {
    common_name: String,
    organisations: Vec<String>,
    names: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
    is_server: bool,
    is_client: bool,
    pub(super) is_authority: bool,
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
    public_key: Vec<u8>,
}

/// The DER form of the first certificate of a PEM text.
pub(super) fn der(pem: &str) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(pem.as_bytes()).ok()
}

impl Facts {
    pub(super) fn read(pem: &str) -> Result<Self, &'static str> {
        let der = der(pem).ok_or("not a certificate in PEM form")?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|_| "a certificate that cannot be read")?;
        let subject = parsed.subject();
        let usage = parsed.extended_key_usage().ok().flatten().map(|usage| usage.value);
        let mut facts = Self {
            common_name: subject.iter_common_name().filter_map(|name| name.as_str().ok()).collect(),
            organisations: subject
                .iter_organization()
                .filter_map(|name| name.as_str().ok().map(str::to_owned))
                .collect(),
            names: BTreeSet::new(),
            addresses: BTreeSet::new(),
            is_server: usage.is_some_and(|usage| usage.server_auth),
            is_client: usage.is_some_and(|usage| usage.client_auth),
            is_authority: parsed.is_ca(),
            not_before: parsed.validity().not_before.to_datetime(),
            not_after: parsed.validity().not_after.to_datetime(),
            public_key: parsed.public_key().raw.to_vec(),
        };
        let alternatives = parsed.subject_alternative_name().ok().flatten();
        for name in alternatives.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::DNSName(name) => {
                    facts.names.insert((*name).to_owned());
                }
                GeneralName::IPAddress(bytes) => facts.addresses.extend(address(bytes)),
                _ => {}
            }
        }
        Ok(facts)
    }

    /// Whether the private key goes with the certificate.
    pub(super) fn belongs_to(&self, key: &str) -> bool {
        KeyPair::from_pem(key).is_ok_and(|pair| pair.subject_public_key_info() == self.public_key)
    }

    pub(super) fn fits(&self, wanted: &Wanted) -> bool {
        let Wanted { common_name, organisation, names, addresses, usages } = wanted;
        self.common_name == *common_name
            && self.organisations == organisation.as_slice()
            && self.names == *names
            && self.addresses == *addresses
            && self.is_server == usages.contains(&ExtendedKeyUsagePurpose::ServerAuth)
            && self.is_client == usages.contains(&ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// Whether it has expired, soon will, or is not valid yet because a clock was put back.
    pub(super) fn is_old(&self, now: OffsetDateTime) -> bool {
        let life: Duration = self.not_after - self.not_before;
        now < self.not_before || self.not_after - now < life / RENEWAL_PART
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(four));
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}
