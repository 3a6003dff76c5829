//! Replicas, and what they share.

use crate::config::document::object;

object! {
    /// Replicas of the backend, and where sessions are kept.
    pub struct ScalingConfig {
        /// Unset leaves the replicas of the StatefulSet alone; any number, 0 included, is written to it.
        omit backend_replicas: Option<i32>,
        /// Its presence moves the sessions to Redis.
        omit session_redis: Option<SessionRedis>,
    }
}

object! {
    /// The Redis server with the sessions. The password comes from the environment.
    pub struct SessionRedis {
        /// `host:port`.
        omit address: String,
        omit db: i32,
        /// Must end with a colon; empty means [`names::redis::PROXY_SESSIONS`](crate::names::redis::PROXY_SESSIONS).
        omit key_prefix: String,
    }
}
