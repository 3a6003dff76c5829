//! What is mounted into the proxy's container, in an order that is part of the contract.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, HostPathVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount,
};
use skep_api::kinds::authz::AuthzSource;
use skep_api::kinds::ca_bundle::{CABundleRef, ConfigMapKeySelector};
use skep_api::kinds::mcp_oidc_config::OIDCSource;
use skep_api::kinds::mcp_server::{HostVolume, MCPServerSpec, PermissionProfileSource};
use skep_api::kinds::mcp_webhook_config::Webhook;
use skep_api::kinds::references::SecretKeyRef;
use skep_api::names::webhook_secret::{self, List, Purpose};
use skep_api::names::{ca_bundle, mcp_server, proxy_pod};

use super::auth_server;
use crate::proxy::gather::authorization_key;
use crate::proxy::{Inputs, Target};

/// The mode of files that only the proxy can read.
const PRIVATE: i32 = 0o400;

/// A volume and where it is mounted.
pub(in crate::proxy) struct Mounted {
    pub volume: Volume,
    pub mount: VolumeMount,
}

/// Everything that is mounted.
pub(in crate::proxy) fn mounted(inputs: &Inputs<'_>) -> Vec<Mounted> {
    let mut mounted = vec![run_config(inputs)];
    match inputs.target {
        Target::Server(spec) => {
            mounted.extend(webhook_secrets(inputs));
            mounted.extend(spec.volumes.iter().map(host_path));
            mounted.extend(permission_profile(spec));
            mounted.extend(policies(inputs));
            mounted.extend(oidc_authorities(inputs));
            mounted.extend(telemetry_authorities(inputs));
        }
        Target::Remote(_) => {
            mounted.extend(policies(inputs));
            mounted.extend(telemetry_authorities(inputs));
            mounted.extend(oidc_authorities(inputs));
        }
    }
    mounted.extend(auth_server::of(inputs).into_iter().flat_map(auth_server::mounted));
    mounted
}

fn run_config(inputs: &Inputs<'_>) -> Mounted {
    let source = config_map(proxy_pod::run_config(inputs.common.name), None);
    Mounted::directory(proxy_pod::RUN_CONFIG_VOLUME, source, proxy_pod::RUN_CONFIG_DIRECTORY)
}

/// The secrets of webhooks by their identifiers, which also gives the order.
fn webhook_secrets(inputs: &Inputs<'_>) -> impl Iterator<Item = Mounted> {
    let mut found = BTreeMap::new();
    let config = inputs.resolved.webhooks.as_ref().map(|config| &config.spec);
    let mutating = config.into_iter().flat_map(|spec| &spec.mutating).map(|webhook| (List::Mutating, webhook));
    let validating = config.into_iter().flat_map(|spec| &spec.validating).map(|webhook| (List::Validating, webhook));
    for (list, webhook) in mutating.chain(validating) {
        for (purpose, secret) in secrets_of(webhook) {
            let identifier = webhook_secret::identifier(list, &webhook.name, purpose, &secret.name, &secret.key);
            found.insert(identifier, (purpose, secret.clone()));
        }
    }
    found.into_iter().map(|(identifier, (purpose, secret))| {
        let source = secret_key(&secret, purpose.file_name());
        let (volume, directory) = (webhook_secret::volume(&identifier), webhook_secret::directory(&identifier));
        Mounted::new(Volume { name: volume, secret: Some(source), ..Volume::default() }, directory)
    })
}

fn secrets_of(webhook: &Webhook) -> impl Iterator<Item = (Purpose, &SecretKeyRef)> {
    let tls = webhook.tls_config.as_ref();
    let secrets = [
        (Purpose::Hmac, webhook.hmac_secret_ref.as_ref()),
        (Purpose::TlsCa, tls.and_then(|tls| tls.ca_secret_ref.as_ref())),
        (Purpose::TlsClientCert, tls.and_then(|tls| tls.client_cert_secret_ref.as_ref())),
        (Purpose::TlsClientKey, tls.and_then(|tls| tls.client_key_secret_ref.as_ref())),
    ];
    secrets.into_iter().filter_map(|(purpose, secret)| Some((purpose, secret?)))
}

fn host_path(volume: &HostVolume) -> Mounted {
    let source = HostPathVolumeSource { path: volume.host_path.clone(), type_: None };
    Mounted {
        volume: Volume { name: volume.name.clone(), host_path: Some(source), ..Volume::default() },
        mount: VolumeMount {
            name: volume.name.clone(),
            mount_path: volume.mount_path.clone(),
            read_only: volume.read_only.then_some(true),
            ..VolumeMount::default()
        },
    }
}

fn permission_profile(spec: &MCPServerSpec) -> Option<Mounted> {
    let profile = spec.permission_profile.as_ref()?;
    (profile.type_ == PermissionProfileSource::ConfigMap).then(|| {
        let source = config_map(profile.name.clone(), None);
        Mounted::directory(mcp_server::PERMISSION_PROFILE_VOLUME, source, mcp_server::PERMISSION_PROFILE_DIRECTORY)
    })
}

/// The policies of `spec.authzConfig`, always under the same file name.
fn policies(inputs: &Inputs<'_>) -> Option<Mounted> {
    let authz = inputs.common.authz_config?;
    let (name, key) = match authz.type_ {
        AuthzSource::Inline => (proxy_pod::inline_authz(inputs.common.name), proxy_pod::AUTHZ_KEY),
        AuthzSource::ConfigMap => {
            let config_map = authz.config_map.as_ref()?;
            (config_map.name.clone(), authorization_key(config_map))
        }
    };
    let source = config_map(name, Some((key, proxy_pod::AUTHZ_KEY)));
    Some(Mounted::directory(proxy_pod::AUTHZ_VOLUME, source, proxy_pod::AUTHZ_DIRECTORY))
}

fn oidc_authorities(inputs: &Inputs<'_>) -> Option<Mounted> {
    let config = &inputs.resolved.oidc.as_ref()?.spec;
    let inline = config.inline.as_ref().filter(|_| config.type_ == OIDCSource::Inline)?;
    let bundle = bundle(inline.ca_bundle_ref.as_ref())?;
    Some(authorities(bundle, &ca_bundle::oidc_volume(&bundle.name), &ca_bundle::oidc_directory(&bundle.name)))
}

fn telemetry_authorities(inputs: &Inputs<'_>) -> Option<Mounted> {
    let telemetry = inputs.resolved.telemetry.as_ref()?.spec.open_telemetry.as_ref()?;
    let bundle = bundle(telemetry.ca_bundle_ref.as_ref())?;
    Some(authorities(bundle, &ca_bundle::telemetry_volume(&bundle.name), &ca_bundle::telemetry_directory(&bundle.name)))
}

fn bundle(reference: Option<&CABundleRef>) -> Option<&ConfigMapKeySelector> {
    reference?.config_map_ref.as_ref().filter(|bundle| !bundle.name.is_empty())
}

fn authorities(bundle: &ConfigMapKeySelector, volume: &str, directory: &str) -> Mounted {
    let key = ca_bundle::key_or_default(&bundle.key);
    let mut source = config_map(bundle.name.clone(), Some((key, key)));
    source.optional = bundle.optional.filter(|optional| *optional);
    Mounted::directory(volume, source, directory)
}

/// A whole ConfigMap, or one of its keys under a file name.
fn config_map(name: String, item: Option<(&str, &str)>) -> ConfigMapVolumeSource {
    let items = item.map(|(key, path)| vec![key_to_path(key, path)]);
    ConfigMapVolumeSource { name, items, ..ConfigMapVolumeSource::default() }
}

/// One key of a Secret under a file name.
fn secret_key(secret: &SecretKeyRef, name: &str) -> SecretVolumeSource {
    SecretVolumeSource {
        secret_name: Some(secret.name.clone()),
        items: Some(vec![key_to_path(&secret.key, name)]),
        ..SecretVolumeSource::default()
    }
}

fn key_to_path(key: &str, path: &str) -> KeyToPath {
    KeyToPath { key: key.to_owned(), path: path.to_owned(), mode: None }
}

impl Mounted {
    /// A volume as a directory that follows the changes of what is in it.
    fn new(volume: Volume, path: String) -> Self {
        let mount = VolumeMount {
            name: volume.name.clone(),
            mount_path: path,
            read_only: Some(true),
            ..VolumeMount::default()
        };
        Self { volume, mount }
    }

    fn directory(name: &str, source: ConfigMapVolumeSource, path: &str) -> Self {
        let volume = Volume { name: name.to_owned(), config_map: Some(source), ..Volume::default() };
        Self::new(volume, path.to_owned())
    }

    /// A key of a Secret as a single file that only the proxy can read. It stays as it was when the pod began.
    pub(super) fn private_file(volume: String, secret: &SecretKeyRef, path: String, name: &str) -> Self {
        let source = SecretVolumeSource { default_mode: Some(PRIVATE), ..secret_key(secret, name) };
        let mut mounted = Self::new(Volume { name: volume, secret: Some(source), ..Volume::default() }, path);
        mounted.mount.sub_path = Some(name.to_owned());
        mounted
    }
}
