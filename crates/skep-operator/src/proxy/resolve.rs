//! The objects that a workload names: found, judged, and told about in its conditions.
//!
//! They come from watched copies, so that nothing is asked of the API server but whether one is really missing, and a change
//! wakes the workload. None of them is ever written here.

use std::sync::Arc;

use skep_api::conditions::{self, ConditionStatus, Statement, reasons, types};
use skep_api::kind::Kind;
use skep_api::kinds::config_status::ConfigStatus;
use skep_api::kinds::mcp_external_auth_config::ExternalAuthType;
use skep_api::kinds::references::AuthServerKind;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
};
use skep_control::Key;

use super::checks;
use super::gather::named;
use super::hashes::Hashes;
use super::report::Report;
use super::{Common, Resolved, Target};
use crate::cluster::{Cluster, OwnKind, Seen, Written};
use crate::config::ConfigKind;
use crate::failure::Failure;

/// A reference that cannot be used. The running pods stay as they are until it can.
#[derive(Debug)]
pub enum Unusable {
    /// What is wrong, in words for the author of the workload.
    Wrong(String),
    /// Nothing is wrong yet: the object's controller has never looked at it.
    Early(String),
    /// The object has changed and its controller has not looked at that, or it exists and no watch has told of it: the
    /// workload stays as it is until that is done.
    Changing,
    /// Whether it exists could not be found out.
    Failure(Failure),
}

impl Unusable {
    fn new(text: impl Into<String>) -> Self {
        Self::Wrong(text.into())
    }

    fn when(is_early: bool, text: String) -> Self {
        if is_early { Self::Early(text) } else { Self::Wrong(text) }
    }
}

/// An object that is named, as far as it can be had.
enum Found<K> {
    Missing,
    Unreadable(String),
    Object(K),
}

struct Resolver<'a> {
    cluster: &'a Cluster,
    common: Common<'a>,
    kind: &'static str,
    is_remote: bool,
    report: &'a mut Report,
    hashes: &'a mut Hashes,
    resolved: Resolved,
}

/// Finds everything that a workload names, in the order of the contract; the first that cannot be used ends it.
///
/// `hashes` are those of the last pass; a reference that cannot be used leaves its own as it was.
pub async fn resolve(
    cluster: &Arc<Cluster>,
    common: Common<'_>,
    target: Target<'_>,
    hashes: &mut Hashes,
    report: &mut Report,
) -> Result<Resolved, Unusable> {
    let webhooks = match target {
        Target::Server(spec) => spec.webhook_config_ref.as_ref().map(|found| found.name.as_str()),
        Target::Remote(_) => None,
    };
    let is_remote = matches!(target, Target::Remote(_));
    let kind = if is_remote { "MCPRemoteProxy" } else { "MCPServer" };
    let mut search = Resolver { cluster, common, kind, is_remote, report, hashes, resolved: Resolved::default() };
    search.all(webhooks).await?;
    Ok(search.resolved)
}

impl Resolver<'_> {
    async fn all(&mut self, webhooks: Option<&str>) -> Result<(), Unusable> {
        self.tools().await?;
        self.telemetry().await?;
        self.external_auth().await?;
        self.webhooks(webhooks).await?;
        self.auth_server().await?;
        self.oidc().await?;
        self.authz().await
    }

    async fn find<K: OwnKind>(&self, name: &str) -> Result<Found<K>, Unusable> {
        match self.cluster.get::<K>(&Key::new(self.common.namespace, name)).as_deref() {
            Some(Seen::Unreadable(object)) => Ok(Found::Unreadable(object.cause.clone())),
            Some(Seen::Read(object)) => Ok(Found::Object(object.clone())),
            // Each kind has its own watch, and what was made first may be told of last.
            None => match named::<Written<K>>(&self.cluster.client, self.common.namespace, name).await {
                Ok(Some(_)) => Err(Unusable::Changing),
                Ok(None) => Ok(Found::Missing),
                Err(error) => Err(Unusable::Failure(error.into())),
            },
        }
    }

    /// The words for an object that does not exist, and for one that cannot be read.
    fn absent<K: OwnKind>(&self, name: &str, found: &Found<K>) -> Option<String> {
        let kind = K::DEFINITION.kind;
        match found {
            Found::Missing if self.is_remote => {
                Some(format!("{kind} '{name}' not found in namespace '{}'", self.common.namespace))
            }
            Found::Missing => Some(format!("{kind} {name} not found in namespace {}", self.common.namespace)),
            Found::Unreadable(cause) => Some(format!("{kind} {name} cannot be read: {cause}")),
            Found::Object(_) => None,
        }
    }

    async fn tools(&mut self) -> Result<(), Unusable> {
        let Some(name) = self.common.tool_config_ref else {
            self.hashes.tools = None;
            return Ok(());
        };
        let found = self.find::<MCPToolConfig>(name).await?;
        let type_ = types::TOOL_CONFIG_VALIDATED;
        if let Some(text) = self.absent(name, &found) {
            if self.is_remote {
                let missing = matches!(found, Found::Missing);
                let reason = if missing { reasons::TOOL_CONFIG_NOT_FOUND } else { reasons::TOOL_CONFIG_FETCH_ERROR };
                self.report.say(Statement::fails(type_, reason, text.clone()));
            }
            return Err(Unusable::new(text));
        }
        if let Found::Object(object) = found {
            if self.is_remote {
                let text = format!("MCPToolConfig '{name}' is valid");
                self.report.say(Statement::holds(type_, reasons::TOOL_CONFIG_VALID, text));
            }
            self.hashes.tools = hash(object.status.as_ref());
            self.resolved.tools = Some(object);
        }
        Ok(())
    }

    async fn telemetry(&mut self) -> Result<(), Unusable> {
        let Some(name) = self.common.telemetry_config_ref.map(|found| found.name.as_str()) else {
            self.hashes.telemetry = None;
            return Ok(());
        };
        let type_ = types::TELEMETRY_CONFIG_REF_VALIDATED;
        let error = if self.is_remote {
            reasons::TELEMETRY_CONFIG_REF_FETCH_ERROR
        } else {
            reasons::TELEMETRY_CONFIG_REF_ERROR
        };
        let (reason, text) = match self.find::<MCPTelemetryConfig>(name).await? {
            Found::Missing => (reasons::TELEMETRY_CONFIG_REF_NOT_FOUND, format!("MCPTelemetryConfig {name} not found")),
            Found::Unreadable(cause) => (error, format!("MCPTelemetryConfig {name} cannot be read: {cause}")),
            Found::Object(object) => match object.validate() {
                Ok(()) => {
                    let text = format!("MCPTelemetryConfig {name} is valid");
                    self.report.say(Statement::holds(type_, reasons::TELEMETRY_CONFIG_REF_VALID, text));
                    self.hashes.telemetry = hash(object.status.as_ref());
                    self.resolved.telemetry = Some(object);
                    return Ok(());
                }
                Err(cause) => {
                    (reasons::TELEMETRY_CONFIG_REF_INVALID, format!("MCPTelemetryConfig {name} is invalid: {cause}"))
                }
            },
        };
        self.report.say(Statement::fails(type_, reason, text.clone()));
        Err(Unusable::new(text))
    }

    async fn external_auth(&mut self) -> Result<(), Unusable> {
        let Some(name) = self.common.external_auth_config_ref else {
            self.hashes.external_auth = None;
            return Ok(());
        };
        let type_ = types::EXTERNAL_AUTH_CONFIG_VALIDATED;
        let found = self.find::<MCPExternalAuthConfig>(name).await?;
        if let Some(text) = self.absent(name, &found) {
            if self.is_remote {
                let reason = match found {
                    Found::Missing => reasons::EXTERNAL_AUTH_CONFIG_NOT_FOUND,
                    _ => reasons::EXTERNAL_AUTH_CONFIG_FETCH_ERROR,
                };
                self.report.say(Statement::fails(type_, reason, text.clone()));
            }
            return Err(Unusable::new(text));
        }
        let Found::Object(object) = found else { return Ok(()) };
        if matches!(judgement(&object), Judgement::Outdated) {
            return Err(Unusable::Changing);
        }
        if let Some(verdict) = refused(object.status.as_ref()) {
            let reason = match verdict.reason.as_str() {
                "" => reasons::INVALID_EXTERNAL_AUTH_CONFIG.to_owned(),
                reason => reason.to_owned(),
            };
            self.report.say(Statement::fails(type_, reason.clone(), verdict.message.clone()));
            let place = format!("{}/{name}", self.common.namespace);
            return Err(Unusable::new(format!(
                "MCPExternalAuthConfig {place}: invalid ({reason}): {}",
                verdict.message
            )));
        }
        self.one_upstream(&object, type_)?;
        if let Some(advice) = checks::without_effect(name, object.spec.type_, self.kind, self.is_remote) {
            self.report.say(advice);
        } else if self.is_remote {
            let text = format!("MCPExternalAuthConfig '{name}' is valid");
            self.report.say(Statement::holds(type_, reasons::EXTERNAL_AUTH_CONFIG_VALID, text));
        } else {
            // What the configuration of the proxy has to say about it is not judged here.
            self.report.clear(type_, Some(reasons::INVALID_CONFIG));
        }
        self.hashes.external_auth = hash(object.status.as_ref());
        self.resolved.external_auth = Some(object);
        Ok(())
    }

    /// Only a VirtualMCPServer can have several upstream providers.
    fn one_upstream(&mut self, object: &MCPExternalAuthConfig, type_: &'static str) -> Result<(), Unusable> {
        let Some(server) = &object.spec.embedded_auth_server else { return Ok(()) };
        let count = server.upstream_providers.len();
        if count <= 1 {
            return Ok(());
        }
        let kind = self.kind;
        let text = format!(
            "{kind} supports only one upstream provider (found {count}); use VirtualMCPServer for multi-upstream"
        );
        self.report.say(Statement::fails(type_, reasons::MULTI_UPSTREAM_NOT_SUPPORTED, text));
        let place = format!("{}/{}", self.common.namespace, self.common.name);
        Err(Unusable::new(format!(
            "{kind} {place}: embedded auth server has {count} upstream providers, but only 1 is supported; use VirtualMCPServer"
        )))
    }

    async fn webhooks(&mut self, name: Option<&str>) -> Result<(), Unusable> {
        let Some(name) = name else {
            self.hashes.webhooks = None;
            return Ok(());
        };
        let type_ = types::WEBHOOK_CONFIG_VALIDATED;
        let text = match self.find::<MCPWebhookConfig>(name).await? {
            Found::Missing => format!("mcpwebhookconfigs.toolhive.stacklok.dev \"{name}\" not found"),
            Found::Unreadable(cause) => format!("MCPWebhookConfig {name} cannot be read: {cause}"),
            Found::Object(object) => match object.validate() {
                Ok(()) => {
                    self.report.clear(type_, None);
                    self.hashes.webhooks = hash(object.status.as_ref());
                    self.resolved.webhooks = Some(object);
                    return Ok(());
                }
                Err(cause) => format!("invalid MCPWebhookConfig {name}: {cause}"),
            },
        };
        self.report.say(Statement::fails(type_, reasons::WEBHOOK_CONFIG_INVALID, text.clone()));
        Err(Unusable::new(text))
    }

    async fn auth_server(&mut self) -> Result<(), Unusable> {
        let Some(reference) = self.common.auth_server_ref else {
            self.hashes.auth_server = None;
            return Ok(());
        };
        let (name, type_) = (reference.name.as_str(), types::AUTH_SERVER_REF_VALIDATED);
        if let AuthServerKind::Other(kind) = &reference.kind {
            let text = format!("unsupported authServerRef kind {kind:?}: only MCPExternalAuthConfig is supported");
            self.report.say(Statement::fails(type_, reasons::AUTH_SERVER_REF_INVALID_KIND, text.clone()));
            return Err(Unusable::new(text));
        }
        let (reason, text) = match self.find::<MCPExternalAuthConfig>(name).await? {
            Found::Missing => {
                let place = self.common.namespace;
                let text = format!("MCPExternalAuthConfig '{name}' not found in namespace '{place}'");
                (reasons::AUTH_SERVER_REF_NOT_FOUND, text)
            }
            Found::Unreadable(cause) => {
                let text = format!("Failed to fetch MCPExternalAuthConfig '{name}': {cause}");
                (reasons::AUTH_SERVER_REF_FETCH_ERROR, text)
            }
            Found::Object(object) if object.spec.type_ != ExternalAuthType::EmbeddedAuthServer => {
                let found = serde_json::to_value(object.spec.type_).unwrap_or_default();
                let text = format!("authServerRef '{name}' has type {found}, but only embeddedAuthServer is supported");
                (reasons::AUTH_SERVER_REF_INVALID_TYPE, text)
            }
            Found::Object(object) if matches!(judgement(&object), Judgement::Outdated) => {
                return Err(Unusable::Changing);
            }
            Found::Object(object) => {
                self.one_upstream(&object, type_)?;
                let text = format!("AuthServerRef '{name}' is valid");
                self.report.say(Statement::holds(type_, reasons::AUTH_SERVER_REF_VALID, text));
                self.hashes.auth_server = hash(object.status.as_ref());
                self.resolved.auth_server = Some(object);
                return Ok(());
            }
        };
        self.report.say(Statement::fails(type_, reason, text.clone()));
        Err(Unusable::new(text))
    }

    async fn oidc(&mut self) -> Result<(), Unusable> {
        let Some(name) = self.common.oidc_config_ref.map(|found| found.name.as_str()) else {
            self.hashes.oidc = None;
            return Ok(());
        };
        let type_ = types::OIDC_CONFIG_REF_VALIDATED;
        let place = format!("{}/{name}", self.common.namespace);
        let (reason, text, is_early) = match self.find::<MCPOIDCConfig>(name).await? {
            Found::Missing => {
                let text =
                    format!("MCPOIDCConfig {name} not found: failed to get MCPOIDCConfig {place}: it does not exist");
                (reasons::OIDC_CONFIG_REF_NOT_FOUND, text, false)
            }
            Found::Unreadable(cause) => {
                (reasons::OIDC_CONFIG_REF_ERROR, format!("MCPOIDCConfig {name} cannot be read: {cause}"), false)
            }
            Found::Object(object) => match judgement(&object) {
                Judgement::Valid => {
                    let text = format!("MCPOIDCConfig {name} is valid and ready");
                    self.report.say(Statement::holds(type_, reasons::OIDC_CONFIG_REF_VALID, text));
                    self.hashes.oidc = hash(object.status.as_ref());
                    self.resolved.oidc = Some(object);
                    return Ok(());
                }
                Judgement::Outdated => return Err(Unusable::Changing),
                Judgement::Invalid(cause) => {
                    (reasons::OIDC_CONFIG_REF_NOT_VALID, format!("MCPOIDCConfig {name} is not valid: {cause}"), false)
                }
                Judgement::None => {
                    (reasons::OIDC_CONFIG_REF_NOT_VALID, format!("MCPOIDCConfig {name} is not valid"), true)
                }
            },
        };
        self.report.say(Statement::fails(type_, reason, text.clone()));
        Err(Unusable::when(is_early, text))
    }

    async fn authz(&mut self) -> Result<(), Unusable> {
        let Some(name) = self.common.authz_config_ref else {
            self.hashes.authz = None;
            return Ok(());
        };
        let type_ = types::AUTHZ_CONFIG_REF_VALIDATED;
        let place = format!("{}/{name}", self.common.namespace);
        let (reason, text, is_early) = match self.find::<MCPAuthzConfig>(name).await? {
            Found::Missing => {
                let text =
                    format!("MCPAuthzConfig {name} not found: failed to get MCPAuthzConfig {place}: it does not exist");
                (reasons::AUTHZ_CONFIG_REF_NOT_FOUND, text, false)
            }
            Found::Unreadable(cause) => {
                (reasons::AUTHZ_CONFIG_REF_ERROR, format!("MCPAuthzConfig {name} cannot be read: {cause}"), false)
            }
            Found::Object(object) => {
                let judgement = judgement(&object);
                if matches!(judgement, Judgement::Outdated) {
                    return Err(Unusable::Changing);
                }
                if matches!(judgement, Judgement::Valid) {
                    let text = format!("MCPAuthzConfig {name} is valid and ready");
                    self.report.say(Statement::holds(type_, reasons::AUTHZ_CONFIG_REF_VALID, text));
                    self.hashes.authz = hash(object.status.as_ref());
                    self.resolved.authz = Some(object);
                    return Ok(());
                }
                let why = match &judgement {
                    Judgement::Invalid(cause) => format!(": {cause}"),
                    _ => String::new(),
                };
                let cause = format!("MCPAuthzConfig {place} is not valid (condition \"Valid\" is not True){why}");
                let text = format!("MCPAuthzConfig {name} is not valid: {cause}");
                (reasons::AUTHZ_CONFIG_REF_NOT_VALID, text, matches!(judgement, Judgement::None))
            }
        };
        self.report.say(Statement::fails(type_, reason, text.clone()));
        Err(Unusable::when(is_early, text))
    }
}

/// What the controller of a config has found out.
enum Judgement {
    /// It has not looked yet.
    None,
    /// It has looked at an older spec.
    Outdated,
    Valid,
    Invalid(String),
}

fn judgement<K: Kind<Status = ConfigStatus>>(object: &K) -> Judgement {
    let conditions = object.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
    match conditions::find(conditions, types::VALID) {
        None => Judgement::None,
        Some(condition) if condition.observed_generation.is_some_and(|seen| Some(seen) < object.meta().generation) => {
            Judgement::Outdated
        }
        Some(condition) if condition.status == ConditionStatus::True => Judgement::Valid,
        Some(condition) => Judgement::Invalid(condition.message.clone()),
    }
}

/// The condition that says that a config is wrong.
fn refused(status: Option<&ConfigStatus>) -> Option<&conditions::Condition> {
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions::find(conditions, types::VALID).filter(|condition| condition.status == ConditionStatus::False)
}

/// The hash as the config's controller published it: opaque, and possibly not there yet.
fn hash(status: Option<&ConfigStatus>) -> Option<String> {
    status.and_then(|status| status.config_hash.clone())
}
