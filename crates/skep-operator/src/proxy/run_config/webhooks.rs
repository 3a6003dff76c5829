//! Services that are asked about requests.

use skep_api::config::run_config::{FailurePolicy, RunConfig, WebhookConfig, WebhookTimeout, WebhookTls};
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPWebhookConfig;
use skep_api::kinds::mcp_server::MCPServerSpec;
use skep_api::kinds::mcp_webhook_config::{self as kind, Webhook, WebhookFailurePolicy};
use skep_api::kinds::references::SecretKeyRef;
use skep_api::names::webhook_secret::{self, List, Purpose};

use super::named;
use crate::proxy::Inputs;

pub(super) fn add(inputs: &Inputs<'_>, spec: &MCPServerSpec, config: &mut RunConfig) -> Result<(), String> {
    let reference = spec.webhook_config_ref.as_ref().map(|reference| reference.name.as_str());
    let Some(object) = named(MCPWebhookConfig::DEFINITION.kind, reference, inputs.resolved.webhooks.as_ref())? else {
        return Ok(());
    };
    config.mutating_webhooks = entries(List::Mutating, "mutating", &object.spec.mutating)?;
    config.validating_webhooks = entries(List::Validating, "validating", &object.spec.validating)?;
    Ok(())
}

fn entries(list: List, word: &str, webhooks: &[Webhook]) -> Result<Vec<WebhookConfig>, String> {
    let numbered = webhooks.iter().enumerate();
    numbered
        .map(|(index, webhook)| {
            entry(list, webhook).map_err(|cause| format!("{word} webhook[{index}] {:?}: {cause}", webhook.name))
        })
        .collect()
}

fn entry(list: List, webhook: &Webhook) -> Result<WebhookConfig, String> {
    let timeout = match &webhook.timeout {
        None => WebhookTimeout::default(),
        Some(timeout) => timeout.parse().map_err(|error| format!("timeout: {error}"))?.into(),
    };
    let hmac = webhook.hmac_secret_ref.as_ref();
    Ok(WebhookConfig {
        failure_policy: match webhook.failure_policy {
            WebhookFailurePolicy::Fail => FailurePolicy::Fail,
            WebhookFailurePolicy::Ignore => FailurePolicy::Ignore,
        },
        hmac_secret_ref: hmac.map(|secret| file(list, webhook, Purpose::Hmac, secret)).unwrap_or_default(),
        name: webhook.name.clone(),
        timeout,
        tls_config: webhook.tls_config.as_ref().map(|settings| tls(list, webhook, settings)).transpose()?.flatten(),
        url: webhook.url.clone(),
        ..WebhookConfig::default()
    })
}

fn tls(list: List, webhook: &Webhook, settings: &kind::WebhookTls) -> Result<Option<WebhookTls>, String> {
    let path = |purpose, secret: Option<&SecretKeyRef>| {
        secret.map(|secret| file(list, webhook, purpose, secret)).unwrap_or_default()
    };
    let (certificate, key) = (settings.client_cert_secret_ref.as_ref(), settings.client_key_secret_ref.as_ref());
    if certificate.is_some() != key.is_some() {
        return Err("tlsConfig.clientCertSecretRef and tlsConfig.clientKeySecretRef must be set together".to_owned());
    }
    let tls = WebhookTls {
        ca_bundle_path: path(Purpose::TlsCa, settings.ca_secret_ref.as_ref()),
        client_cert_path: path(Purpose::TlsClientCert, certificate),
        client_key_path: path(Purpose::TlsClientKey, key),
        insecure_skip_verify: settings.insecure_skip_verify.unwrap_or_default(),
        ..WebhookTls::default()
    };
    Ok((tls != WebhookTls::default()).then_some(tls))
}

fn file(list: List, webhook: &Webhook, purpose: Purpose, secret: &SecretKeyRef) -> String {
    let identifier = webhook_secret::identifier(list, &webhook.name, purpose, &secret.name, &secret.key);
    webhook_secret::file(&identifier, purpose)
}
