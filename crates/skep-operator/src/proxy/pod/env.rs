//! The environment of the proxy's container, in an order that is part of the contract.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};
use skep_api::kinds::mcp_external_auth_config::{ExternalAuthType, MCPExternalAuthConfigSpec};
use skep_api::kinds::mcp_oidc_config::OIDCSource;
use skep_api::kinds::mcp_remote_proxy::MCPRemoteProxySpec;
use skep_api::kinds::references::SecretKeyRef;
use skep_api::kinds::session_storage::SessionProvider;
use skep_api::names::annotations;
use skep_api::names::env::{self, operator, runner};

use super::auth_server;
use crate::proxy::{Inputs, Target};

/// Variables in the order in which they were added.
#[derive(Default)]
pub(in crate::proxy) struct Environment(Vec<EnvVar>);

/// Everything that the proxy's container is told by variables.
pub(super) fn environment(inputs: &Inputs<'_>) -> Vec<EnvVar> {
    let mut variables = Environment::default();
    match inputs.target {
        Target::Server(_) => {
            telemetry(inputs, &mut variables);
            credentials(inputs, &mut variables);
            oidc(inputs, &mut variables);
            of_users(inputs, &mut variables);
            session_store(inputs, &mut variables);
            variables.field(runner::MCP_SERVER_GENERATION, annotations::MCP_SERVER_GENERATION);
            embedded_auth_server(inputs, &mut variables);
            variables.add_defaults();
        }
        Target::Remote(spec) => {
            telemetry(inputs, &mut variables);
            oidc(inputs, &mut variables);
            credentials(inputs, &mut variables);
            forwarded_headers(inputs, spec, &mut variables);
            of_users(inputs, &mut variables);
            session_store(inputs, &mut variables);
            variables.add_defaults();
            embedded_auth_server(inputs, &mut variables);
        }
    }
    variables.finish()
}

fn telemetry(inputs: &Inputs<'_>, variables: &mut Environment) {
    let Some(reference) = inputs.common.telemetry_config_ref else { return };
    let service = reference.service_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(inputs.common.name);
    let attributes = env::resource_attributes(service, inputs.common.namespace);
    variables.literal(runner::OTEL_RESOURCE_ATTRIBUTES, &attributes);
    let config = inputs.resolved.telemetry.as_ref().and_then(|config| config.spec.open_telemetry.as_ref());
    for header in config.into_iter().flat_map(|config| &config.sensitive_headers) {
        variables.secret(&env::telemetry_header(&header.name), &header.secret_key_ref);
    }
}

/// What requests to the server are signed with.
fn credentials(inputs: &Inputs<'_>, variables: &mut Environment) {
    let Some(MCPExternalAuthConfigSpec { type_, token_exchange, bearer_token, obo, .. }) =
        inputs.resolved.external_auth.as_ref().map(|config| &config.spec)
    else {
        return;
    };
    match type_ {
        ExternalAuthType::TokenExchange => {
            let secret = token_exchange.as_ref().and_then(|exchange| exchange.client_secret_ref.as_ref());
            variables.optional_secret(runner::TOKEN_EXCHANGE_CLIENT_SECRET, secret);
        }
        ExternalAuthType::BearerToken => {
            let Some(token) = bearer_token.as_ref().map(|token| &token.token_secret_ref) else { return };
            variables.secret(&env::secret(&token.name), token);
            if let Some(alias) = env::secret_alias(&token.name) {
                variables.secret(&alias, token);
            }
        }
        ExternalAuthType::Obo => {
            let secret = obo.as_ref().and_then(|obo| obo.client_secret_ref.as_ref());
            variables.optional_secret(runner::ON_BEHALF_OF_CLIENT_SECRET, secret);
        }
        // The embedded auth server has a place of its own in the order.
        ExternalAuthType::EmbeddedAuthServer
        | ExternalAuthType::HeaderInjection
        | ExternalAuthType::Unauthenticated
        | ExternalAuthType::AwsSts
        | ExternalAuthType::UpstreamInject
        | ExternalAuthType::Xaa => {}
    }
}

fn oidc(inputs: &Inputs<'_>, variables: &mut Environment) {
    let Some(config) = inputs.resolved.oidc.as_ref().map(|config| &config.spec) else { return };
    if config.type_ == OIDCSource::Inline && inputs.resolved.oidc_client_secret {
        let secret = config.inline.as_ref().and_then(|inline| inline.client_secret_ref.as_ref());
        variables.optional_secret(runner::OIDC_CLIENT_SECRET, secret);
    }
}

fn forwarded_headers(inputs: &Inputs<'_>, spec: &MCPRemoteProxySpec, variables: &mut Environment) {
    for header in spec.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret) {
        let name = env::header_forward_secret(&header.header_name, inputs.common.name);
        variables.secret(&name, &header.value_secret_ref);
    }
}

fn of_users(inputs: &Inputs<'_>, variables: &mut Environment) {
    for variable in inputs.deployment_overrides().into_iter().flat_map(|overrides| &overrides.env) {
        variables.literal(&variable.name, variable.value.expose());
    }
}

/// The password of the session store: that of the workload, or that of the one for everybody if the workload has none.
fn session_store(inputs: &Inputs<'_>, variables: &mut Environment) {
    match inputs.common.session_storage {
        Some(storage) if storage.provider == SessionProvider::Redis => {
            variables.optional_secret(runner::SESSION_REDIS_PASSWORD, storage.password_ref.as_ref());
        }
        Some(_) => {}
        None => {
            let password = inputs.settings.redis.as_ref().and_then(|redis| redis.password.clone());
            let password = password.map(|(name, key)| SecretKeyRef { key, name });
            variables.optional_secret(runner::SESSION_REDIS_PASSWORD, password.as_ref());
        }
    }
}

fn embedded_auth_server(inputs: &Inputs<'_>, variables: &mut Environment) {
    if let Some(server) = auth_server::of(inputs) {
        auth_server::add_variables(server, variables);
    }
}

impl Environment {
    pub(super) fn literal(&mut self, name: &str, value: &str) {
        // The API server leaves an empty value out.
        let value = (!value.is_empty()).then(|| value.to_owned());
        self.0.push(EnvVar { name: name.to_owned(), value, value_from: None });
    }

    pub(in crate::proxy) fn secret(&mut self, name: &str, secret: &SecretKeyRef) {
        let selector = SecretKeySelector { key: secret.key.clone(), name: secret.name.clone(), optional: None };
        let source = EnvVarSource { secret_key_ref: Some(selector), ..EnvVarSource::default() };
        self.0.push(EnvVar { name: name.to_owned(), value: None, value_from: Some(source) });
    }

    pub(super) fn optional_secret(&mut self, name: &str, secret: Option<&SecretKeyRef>) {
        if let Some(secret) = secret {
            self.secret(name, secret);
        }
    }

    /// An annotation of the pod, frozen when it starts.
    fn field(&mut self, name: &str, annotation: &str) {
        let selector =
            ObjectFieldSelector { api_version: Some("v1".to_owned()), field_path: annotations::field_path(annotation) };
        let source = EnvVarSource { field_ref: Some(selector), ..EnvVarSource::default() };
        self.0.push(EnvVar { name: name.to_owned(), value: None, value_from: Some(source) });
    }

    fn add_defaults(&mut self) {
        for (name, value) in [
            (runner::XDG_CONFIG_HOME, runner::WRITABLE_DIRECTORY),
            (runner::HOME, runner::WRITABLE_DIRECTORY),
            (runner::RUNTIME, runner::RUNTIME_KUBERNETES),
            (operator::UNSTRUCTURED_LOGS, "false"),
        ] {
            if self.0.iter().all(|variable| variable.name != name) {
                self.literal(name, value);
            }
        }
        // Secrets of the environment are found by no other provider, whatever the user asks for.
        if self.0.iter().any(|variable| variable.name.starts_with(env::SECRET_PREFIX)) {
            self.literal(runner::SECRETS_PROVIDER, runner::SECRETS_PROVIDER_ENVIRONMENT);
        }
    }

    /// Each name once, where it was said last: that is the one that would count.
    pub(in crate::proxy) fn finish(self) -> Vec<EnvVar> {
        let mut kept: Vec<EnvVar> = Vec::new();
        for variable in self.0.into_iter().rev() {
            if kept.iter().all(|known| known.name != variable.name) {
                kept.push(variable);
            }
        }
        kept.reverse();
        kept
    }
}
