//! What the embedded auth server of a proxy needs in its pod.

use skep_api::kinds::auth_server::EmbeddedAuthServer;
use skep_api::kinds::auth_server::storage::AuthServerStorageType;
use skep_api::names::auth_server;
use skep_api::names::env::{self, runner};

use super::env::Environment;
use super::volumes::Mounted;
use crate::proxy::Inputs;

/// The embedded auth server, if there is one: that of `spec.authServerRef` before that of `spec.externalAuthConfigRef`.
pub(super) fn of<'a>(inputs: &Inputs<'a>) -> Option<&'a EmbeddedAuthServer> {
    let resolved = inputs.resolved;
    let config = resolved.auth_server.as_ref().or(resolved.external_auth.as_ref())?;
    config.spec.embedded_auth_server.as_ref()
}

/// Upstreams, delegate clients, storage, in this order.
pub(super) fn add_variables(server: &EmbeddedAuthServer, variables: &mut Environment) {
    for upstream in &server.upstream_providers {
        let oidc = upstream.oidc_config.as_ref().and_then(|config| config.client_secret_ref.as_ref());
        let oauth2 = upstream.oauth2_config.as_ref();
        let secret = oidc.or(oauth2.and_then(|config| config.client_secret_ref.as_ref()));
        variables.optional_secret(&env::upstream_client_secret(&upstream.name), secret);
        let registration = oauth2.and_then(|config| config.dcr_config.as_ref());
        let token = registration.and_then(|registration| registration.initial_access_token_ref.as_ref());
        variables.optional_secret(&env::upstream_initial_access_token(&upstream.name), token);
    }
    for (index, client) in server.delegate_clients.iter().enumerate() {
        variables.secret(&env::delegate_client_secret(index), &client.client_secret_ref);
    }
    let storage = server.storage.as_ref().filter(|storage| storage.type_ == AuthServerStorageType::Redis);
    if let Some(redis) = storage.and_then(|storage| storage.redis.as_ref()) {
        let user = &redis.acl_user_config;
        variables.optional_secret(runner::AUTH_SERVER_REDIS_USERNAME, user.username_secret_ref.as_ref());
        variables.secret(runner::AUTH_SERVER_REDIS_PASSWORD, &user.password_secret_ref);
    }
}

/// Keys, secrets and authorities, as files that only the proxy can read.
pub(super) fn mounted(server: &EmbeddedAuthServer) -> Vec<Mounted> {
    let keys = server.signing_key_secret_refs.iter().enumerate().map(|(index, secret)| {
        let (path, name) = (auth_server::signing_key_file(index), auth_server::signing_key_name(index));
        Mounted::private_file(auth_server::signing_key_volume(index), secret, path, &name)
    });
    let secrets = server.hmac_secret_refs.iter().enumerate().map(|(index, secret)| {
        let (path, name) = (auth_server::hmac_file(index), auth_server::hmac_name(index));
        Mounted::private_file(auth_server::hmac_volume(index), secret, path, &name)
    });
    let redis = server.storage.as_ref().and_then(|storage| storage.redis.as_ref());
    let authorities = [
        (
            redis.and_then(|redis| redis.tls.as_ref()),
            auth_server::REDIS_CA_VOLUME,
            auth_server::REDIS_CA_FILE,
            auth_server::REDIS_CA_KEY,
        ),
        (
            redis.and_then(|redis| redis.sentinel_tls.as_ref()),
            auth_server::SENTINEL_CA_VOLUME,
            auth_server::SENTINEL_CA_FILE,
            auth_server::SENTINEL_CA_KEY,
        ),
    ];
    let authorities = authorities.into_iter().filter_map(|(tls, volume, path, name)| {
        let secret = tls?.ca_cert_secret_ref.as_ref()?;
        Some(Mounted::private_file(volume.to_owned(), secret, path.to_owned(), name))
    });
    keys.chain(secrets).chain(authorities).collect()
}
