//! Replicas of the backend, and where sessions are kept.

use skep_api::config::run_config::{ScalingConfig, SessionRedis};
use skep_api::kinds::session_storage::{SessionProvider, SessionStorage};

use super::text;
use crate::proxy::{Inputs, Target};

/// Nothing when there is nothing to say.
pub(super) fn config(inputs: &Inputs<'_>) -> Result<Option<ScalingConfig>, String> {
    let backend_replicas = match inputs.target {
        Target::Server(spec) => spec.backend_replicas,
        Target::Remote(_) => None,
    };
    let session_redis = match inputs.common.session_storage {
        Some(storage) => own(storage)?,
        None => inputs
            .settings
            .redis
            .as_ref()
            .map(|redis| SessionRedis { address: redis.address.clone(), ..SessionRedis::default() }),
    };
    let config = ScalingConfig { backend_replicas, session_redis, ..ScalingConfig::default() };
    Ok((config != ScalingConfig::default()).then_some(config))
}

/// A workload that asks for memory gets memory, whatever there is for everybody.
fn own(storage: &SessionStorage) -> Result<Option<SessionRedis>, String> {
    match storage.provider {
        SessionProvider::Memory => Ok(None),
        SessionProvider::Redis => {
            let address = text(storage.address.as_deref());
            if address.is_empty() {
                return Err("sessionStorage.address must be host:port of the Redis server".to_owned());
            }
            let key_prefix = text(storage.key_prefix.as_deref());
            Ok(Some(SessionRedis { address, db: storage.db, key_prefix, ..SessionRedis::default() }))
        }
    }
}
