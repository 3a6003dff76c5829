//! What makes an MCPWebhookConfig valid.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use skep_api::kinds::MCPWebhookConfig;
use skep_api::kinds::mcp_webhook_config::{Webhook, WebhookTls};
use skep_api::names::finalizers;
use url::Url;

use super::address::{self, Reach};
use super::rules::Rules;
use super::{Complaint, ConfigKind};

static RULES: LazyLock<Rules> = LazyLock::new(Rules::of::<MCPWebhookConfig>);

const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

impl ConfigKind for MCPWebhookConfig {
    const FINALIZER: &'static str = finalizers::MCP_WEBHOOK_CONFIG;

    /// The first complaint about each webhook, one per line.
    fn judge(&self) -> Result<(), Complaint> {
        RULES.check(&self.spec)?;
        let mut complaints = Vec::new();
        for (list, webhooks) in [("validating", &self.spec.validating), ("mutating", &self.spec.mutating)] {
            let mut names = BTreeSet::new();
            for (index, webhook) in webhooks.iter().enumerate() {
                let unique = if names.insert(&webhook.name) {
                    Ok(())
                } else {
                    Err("name is that of another one; choose another".to_owned())
                };
                if let Err(complaint) = check(webhook).and(unique) {
                    complaints.push(format!("{list} webhook[{index}] {:?}: {complaint}", webhook.name));
                }
            }
        }
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n").into()) }
    }
}

fn check(webhook: &Webhook) -> Result<(), String> {
    if webhook.name.is_empty() {
        return Err("name must not be empty".to_owned());
    }
    let tls = webhook.tls_config.as_ref();
    check_url(&webhook.url, tls.and_then(|tls| tls.insecure_skip_verify).unwrap_or_default())?;
    if let Some(timeout) = &webhook.timeout {
        let duration = timeout.parse().map_err(|error| format!("timeout: {error}"))?;
        if !duration.is_zero() && !(SHORTEST_TIMEOUT..=LONGEST_TIMEOUT).contains(&duration) {
            return Err(format!("timeout {:?} must be from 1s to 30s", timeout.0));
        }
    }
    check_pair(tls)
}

fn check_url(url: &str, insecure: bool) -> Result<(), String> {
    if url.is_empty() {
        return Err("url must not be empty".to_owned());
    }
    let parsed = Url::parse(url).map_err(|error| format!("url {url:?} is not a URL: {error}"))?;
    address::check_user("url", &parsed)?;
    if !parsed.has_host() {
        return Err(format!("url {url:?} must have a host"));
    }
    match parsed.scheme() {
        "https" => {}
        "http" if insecure => {}
        "http" => {
            return Err(format!(
                "url {url:?} must use HTTPS; set tlsConfig.insecureSkipVerify to true to allow http during development"
            ));
        }
        other => return Err(format!("url {url:?} must use HTTPS, not {other}")),
    }
    // Most of them are services of the same cluster.
    address::check_reach("url", url, &parsed, Reach::Private)
}

fn check_pair(tls: Option<&WebhookTls>) -> Result<(), String> {
    let is_set = |find: fn(&WebhookTls) -> bool| tls.is_some_and(find);
    let certificate = is_set(|tls| tls.client_cert_secret_ref.is_some());
    let key = is_set(|tls| tls.client_key_secret_ref.is_some());
    if certificate == key {
        return Ok(());
    }
    Err("tlsConfig.clientCertSecretRef and tlsConfig.clientKeySecretRef must be set together".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::kinds::MCPWebhookConfig;

    use crate::config::judge;

    fn with(extra: &Value) -> Value {
        let mut webhook = json!({"name": "w", "url": "https://hook.example/path"});
        webhook.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"mutating": [webhook]})
    }

    #[test]
    fn specs_are_judged() {
        let secret = json!({"name": "s", "key": "k"});
        let pair = "mutating webhook[0] \"w\": tlsConfig.clientCertSecretRef and tlsConfig.clientKeySecretRef must be \
                    set together";
        judge::<MCPWebhookConfig>([
            (json!({}), "at least one validating or mutating webhook must be defined"),
            (with(&json!({})), ""),
            (with(&json!({"name": ""})), "mutating webhook[0] \"\": name must not be empty"),
            (with(&json!({"url": ""})), "mutating webhook[0] \"w\": url must not be empty"),
            (
                with(&json!({"url": "not a url"})),
                "mutating webhook[0] \"w\": url \"not a url\" is not a URL: relative URL without a base",
            ),
            (
                with(&json!({"url": "http://hook.example"})),
                "mutating webhook[0] \"w\": url \"http://hook.example\" must use HTTPS; set \
                 tlsConfig.insecureSkipVerify to true to allow http during development",
            ),
            (with(&json!({"url": "http://hook.example", "tlsConfig": {"insecureSkipVerify": true}})), ""),
            (
                with(&json!({"url": "ftp://hook.example", "tlsConfig": {"insecureSkipVerify": true}})),
                "mutating webhook[0] \"w\": url \"ftp://hook.example\" must use HTTPS, not ftp",
            ),
            (with(&json!({"url": "https://10.0.0.5/path"})), ""),
            (
                with(&json!({"url": "https://169.254.169.254/"})),
                "mutating webhook[0] \"w\": url \"https://169.254.169.254/\" is at a link-local or reserved address, which no \
                 proxy asks",
            ),
            (
                with(&json!({"url": "https://user:hunter2@hook.example/"})),
                "mutating webhook[0] \"w\": url must not have a user or a password in it: a proxy does not send them",
            ),
            (with(&json!({"timeout": "0s"})), ""),
            (with(&json!({"timeout": "1s"})), ""),
            (with(&json!({"timeout": "30s"})), ""),
            (with(&json!({"timeout": "999ms"})), "mutating webhook[0] \"w\": timeout \"999ms\" must be from 1s to 30s"),
            (with(&json!({"timeout": "31s"})), "mutating webhook[0] \"w\": timeout \"31s\" must be from 1s to 30s"),
            (
                with(&json!({"timeout": "soon"})),
                "mutating webhook[0] \"w\": timeout: duration \"soon\" is not a sequence of numbers with units; write it \
                 like 90s, 1m30s or 250ms",
            ),
            (with(&json!({"tlsConfig": {"clientCertSecretRef": secret}})), pair),
            (with(&json!({"tlsConfig": {"clientKeySecretRef": secret}})), pair),
            (with(&json!({"tlsConfig": {"clientCertSecretRef": secret, "clientKeySecretRef": secret}})), ""),
        ]);
    }

    #[test]
    fn every_bad_webhook_is_named_once_and_validating_ones_come_first() {
        let good = json!({"name": "a", "url": "https://a"});
        let bad = json!({"name": "b", "url": "http://b", "timeout": "1h"});
        let spec = json!({"mutating": [good, bad], "validating": [good, good]});
        judge::<MCPWebhookConfig>([(
            spec,
            "validating webhook[1] \"a\": name is that of another one; choose another\n\
             mutating webhook[1] \"b\": url \"http://b\" must use HTTPS; set tlsConfig.insecureSkipVerify to true to \
             allow http during development",
        )]);
        let same_in_both = json!({"mutating": [good], "validating": [good]});
        judge::<MCPWebhookConfig>([(same_in_both, "")]);
    }
}
