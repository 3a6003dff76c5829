//! Where the auth server keeps what it must remember.

use skep_api::config::run_config::{
    AuthServerRedis, AuthServerStorage, RedisAclUser, RedisSentinel, RedisTls, StorageType,
};
use skep_api::kinds::auth_server::storage as kind;
use skep_api::names::env::runner;
use skep_api::names::{auth_server, redis, service_host};

use super::text;
use crate::proxy::Inputs;

/// Nothing for memory.
pub(super) fn translate(
    inputs: &Inputs<'_>,
    storage: &kind::AuthServerStorage,
) -> Result<Option<AuthServerStorage>, String> {
    match storage.type_ {
        kind::AuthServerStorageType::Memory => Ok(None),
        kind::AuthServerStorageType::Redis => {
            let redis = storage.redis.as_ref().ok_or("storage.redis must be set when storage.type is redis")?;
            Ok(Some(AuthServerStorage {
                redis_config: Some(server(inputs, redis)?),
                type_: StorageType::Redis,
                ..AuthServerStorage::default()
            }))
        }
    }
}

fn server(inputs: &Inputs<'_>, redis: &kind::RedisStorage) -> Result<AuthServerRedis, String> {
    let common = &inputs.common;
    let addr = text(redis.addr.as_deref());
    if addr.is_empty() != redis.sentinel_config.is_some() {
        return Err("storage.redis: exactly one of addr or sentinelConfig must be set".to_owned());
    }
    let password = &redis.acl_user_config.password_secret_ref;
    if password.name.is_empty() || password.key.is_empty() {
        return Err("storage.redis.aclUserConfig.passwordSecretRef must name a Secret and a key".to_owned());
    }
    let has_user = redis.acl_user_config.username_secret_ref.is_some();
    Ok(AuthServerRedis {
        acl_user_config: Some(RedisAclUser {
            password_env_var: runner::AUTH_SERVER_REDIS_PASSWORD.to_owned(),
            username_env_var: text(has_user.then_some(runner::AUTH_SERVER_REDIS_USERNAME)),
            ..RedisAclUser::default()
        }),
        addr,
        auth_type: AuthServerRedis::AUTH_TYPE_ACL_USER.to_owned(),
        cluster_mode: redis.cluster_mode.unwrap_or_default(),
        dial_timeout: redis.dial_timeout.clone(),
        key_prefix: redis::auth_server(common.namespace, common.name),
        read_timeout: redis.read_timeout.clone(),
        sentinel_config: redis
            .sentinel_config
            .as_ref()
            .map(|sentinel| sentinels(common.namespace, sentinel))
            .transpose()?,
        sentinel_tls: redis.sentinel_tls.as_ref().map(|settings| tls(settings, auth_server::SENTINEL_CA_FILE)),
        tls: redis.tls.as_ref().map(|settings| tls(settings, auth_server::REDIS_CA_FILE)),
        write_timeout: redis.write_timeout.clone(),
        ..AuthServerRedis::default()
    })
}

/// Addresses win over a Service.
fn sentinels(namespace: &str, sentinel: &kind::RedisSentinel) -> Result<RedisSentinel, String> {
    let sentinel_addrs = match (sentinel.sentinel_addrs.as_slice(), &sentinel.sentinel_service) {
        ([], None) => {
            return Err("storage.redis.sentinelConfig: sentinelAddrs or sentinelService must be set".to_owned());
        }
        ([], Some(service)) => {
            let namespace = service.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(namespace);
            let port = if service.port > 0 { service.port } else { auth_server::DEFAULT_SENTINEL_PORT };
            vec![format!("{}:{port}", service_host(&service.name, namespace))]
        }
        (addresses, _) => addresses.to_vec(),
    };
    Ok(RedisSentinel {
        db: sentinel.db,
        master_name: sentinel.master_name.clone(),
        sentinel_addrs,
        ..RedisSentinel::default()
    })
}

fn tls(settings: &kind::RedisTls, ca_file: &str) -> RedisTls {
    RedisTls {
        ca_cert_file: text(settings.ca_cert_secret_ref.as_ref().map(|_| ca_file)),
        insecure_skip_verify: settings.insecure_skip_verify.unwrap_or_default(),
        ..RedisTls::default()
    }
}
