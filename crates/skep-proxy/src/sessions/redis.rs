//! A connection to Redis, where proxies that stand for one server share what they know.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{FromRedisValue, IntoConnectionInfo as _, Pipeline, RedisConnectionInfo};

use super::Unavailable;

/// What keys begin with when nobody says otherwise.
const KEY_PREFIX: &str = "thv:proxy:session:";
/// How long one operation may take, with everything that it needs.
const OPERATION: Duration = Duration::from_secs(5);
/// How long a connection may take to be made.
const DIAL: Duration = Duration::from_secs(5);
/// How long the server may take for an answer.
const RESPONSE: Duration = Duration::from_secs(3);
/// How long it may stay silent about what was sent to it. A machine that vanishes says nothing, and the kernel would try
/// for a quarter of an hour to reach it, while a new one waits at the same name.
const SILENCE: Duration = Duration::from_secs(5);
/// How often a connection is tried again for one operation. A store that is gone should be told soon.
const RETRIES: usize = 1;

/// Where Redis is.
#[derive(Clone)]
pub struct RedisSettings {
    /// `host:port`.
    pub address: String,
    /// The number of the database.
    pub database: i64,
    /// What keys begin with. It ends with a colon.
    pub key_prefix: String,
    /// What it asks for, if it does.
    pub password: Option<String>,
}

impl RedisSettings {
    /// The first database at an address, without a password.
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), database: 0, key_prefix: KEY_PREFIX.to_owned(), password: None }
    }

    /// The host and the port, if the address has both.
    pub fn place(&self) -> Option<(&str, u16)> {
        let (host, port) = self.address.rsplit_once(':').filter(|(host, _)| !host.is_empty())?;
        Some((host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?))
    }
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RedisSettings")
            .field("address", &self.address)
            .field("database", &self.database)
            .field("key_prefix", &self.key_prefix)
            .field("has_password", &self.password.is_some())
            .finish()
    }
}

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// The address is none.
    #[error("session_redis.address: {0:?} is not of the form host:port")]
    Address(String),
    /// The prefix would run into the keys of others.
    #[error("session_redis.key_prefix: {0:?} does not end with a colon")]
    KeyPrefix(String),
    /// It cannot be used.
    #[error("cannot use Redis at {address}: {reason}")]
    Connect {
        /// Where it should be.
        address: String,
        /// What is wrong.
        reason: String,
    },
}

/// A connection to Redis, which is made again when it breaks.
#[derive(Clone)]
pub struct Redis {
    connection: ConnectionManager,
    /// What keys begin with.
    pub(super) prefix: Arc<str>,
}

impl fmt::Debug for Redis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Redis {
    /// Connects, and makes sure that it answers.
    pub async fn connect(settings: &RedisSettings) -> Result<Self, RedisError> {
        let (host, port) = settings.place().ok_or_else(|| RedisError::Address(settings.address.clone()))?;
        if !settings.key_prefix.ends_with(':') {
            return Err(RedisError::KeyPrefix(settings.key_prefix.clone()));
        }
        let failed = |reason: String| RedisError::Connect { address: settings.address.clone(), reason };
        let mut redis = RedisConnectionInfo::default().set_db(settings.database);
        if let Some(password) = &settings.password {
            redis = redis.set_password(password);
        }
        let connecting = async {
            let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(SILENCE);
            let info = (host, port).into_connection_info()?.set_redis_settings(redis).set_tcp_settings(tcp);
            let config = ConnectionManagerConfig::new()
                .set_number_of_retries(RETRIES)
                .set_connection_timeout(Some(DIAL))
                .set_response_timeout(Some(RESPONSE));
            let mut connection = ConnectionManager::new_with_config(redis::Client::open(info)?, config).await?;
            redis::cmd("PING").exec_async(&mut connection).await?;
            Ok(connection)
        };
        let connected = tokio::time::timeout(OPERATION, connecting).await;
        let connection = connected
            .map_err(|_| failed(format!("no answer within {} s", OPERATION.as_secs())))?
            .map_err(|error: redis::RedisError| failed(error.to_string()))?;
        Ok(Self { connection, prefix: settings.key_prefix.as_str().into() })
    }

    /// The connection, for others who keep something there.
    pub(crate) fn connection(&self) -> ConnectionManager {
        self.connection.clone()
    }

    /// The answers to some commands, which are sent together.
    pub(super) async fn ask<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, Unavailable> {
        let asking = async {
            let mut connection = self.connection.clone();
            match commands.query_async(&mut connection).await {
                // That was how we found out that the connection is lost. Now there may be a new one.
                Err(error) if error.is_unrecoverable_error() => commands.query_async(&mut connection).await,
                answer => answer,
            }
        };
        match tokio::time::timeout(OPERATION, asking).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the session store cannot be asked");
                Err(Unavailable)
            }
            Err(_) => {
                tracing::warn!(seconds = OPERATION.as_secs(), "the session store does not answer");
                Err(Unavailable)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;
    use std::time::Instant;

    use skep_conformance::redis::{PASSWORD, RedisServer};
    use skep_conformance::skip::skip;

    use super::*;

    #[tokio::test]
    async fn settings_that_cannot_be_right_are_named() {
        for (address, prefix, expected) in [
            ("nowhere", "a:", "session_redis.address: \"nowhere\" is not of the form host:port"),
            (":1", "a:", "session_redis.address: \":1\" is not of the form host:port"),
            ("a:99999", "a:", "session_redis.address: \"a:99999\" is not of the form host:port"),
            ("a:1", "a", "session_redis.key_prefix: \"a\" does not end with a colon"),
            ("a:1", "", "session_redis.key_prefix: \"\" does not end with a colon"),
        ] {
            let settings = RedisSettings { key_prefix: prefix.to_owned(), ..RedisSettings::new(address) };
            assert_eq!(Redis::connect(&settings).await.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_password_is_shown_to_nobody() {
        let settings = RedisSettings { password: Some("honey".to_owned()), ..RedisSettings::new("a:1") };
        assert!(!format!("{settings:?}").contains("honey"));
    }

    /// Says that a test is in a network of its own.
    const ALONE: &str = "SKEP_TEST_ALONE";

    fn loopback(state: &str) {
        let set = Command::new("ip").args(["link", "set", "lo", state]).status().unwrap();
        assert!(set.success(), "lo {state}");
    }

    #[tokio::test]
    async fn a_machine_that_vanishes_is_given_up_for_what_comes_in_its_place() {
        let name = "a_machine_that_vanishes_is_given_up_for_what_comes_in_its_place";
        if env::var_os(ALONE).is_none() {
            return in_a_network_of_its_own(name);
        }
        loopback("up");
        let Some(server) = RedisServer::start(name) else { return };
        let settings = RedisSettings { password: Some(PASSWORD.to_owned()), ..RedisSettings::new(&server.address()) };
        let redis = Redis::connect(&settings).await.unwrap();
        let mut question = redis::pipe();
        question.cmd("PING").ignore();
        assert_eq!(redis.ask::<()>(&question).await, Ok(()));

        loopback("down");
        let vanished = Instant::now();
        assert_eq!(redis.ask::<()>(&question).await, Err(Unavailable));
        // The kernel would send again after 12.6 and after 25.4 seconds.
        tokio::time::sleep_until((vanished + Duration::from_secs(14)).into()).await;
        loopback("up");
        assert_eq!(redis.ask::<()>(&question).await, Ok(()));
    }

    /// Runs a test of this program where nobody else is hurt when the network is gone.
    fn in_a_network_of_its_own(test: &str) {
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net"])
            .arg(env::current_exe().unwrap())
            .args([&format!("{}::{test}", module_path!().split_once("::").unwrap().1), "--exact", "--nocapture"])
            .env(ALONE, "yes")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        if told.starts_with("unshare: ") {
            return skip(test, "no namespaces here");
        }
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}\n{told}");
    }
}
