//! How a proxy faces its clients, and what it grants them and the server.

use std::net::IpAddr;
use std::time::Duration;

use skep_api::config::run_config::middleware::{BodyLimitParameters, OriginParameters};
use skep_api::config::run_config::{MiddlewareType, ProxyMode, RunConfig, ScalingConfig, Transport};
use skep_api::duration;
use skep_api::names::env::runner;
use skep_node::container::POD_ADDRESS_VARIABLE;
use skep_operator::runner::Attachment;
use skep_proxy::middleware::Middleware;
use skep_proxy::transparent::{Dialect, Probing};
use skep_proxy::{EraSettings, Forwarded, Limits, Redis, RedisSettings, SealKey, SessionStore, TlsIdentity};

use super::document::unusable;
use super::{Variables, eras, seal_key};
use crate::cli::EraArgs;
use crate::hint::Hinted;

/// Where a document that says nothing about it listens.
const LOCAL: &str = "127.0.0.1";

/// The side of a proxy that clients see.
#[derive(Debug, Clone)]
pub(crate) struct Front {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) mode: Dialect,
    pub(crate) origins: Vec<String>,
    pub(crate) forwarded: Forwarded,
    pub(crate) limits: Limits,
    /// How long there may be no pod whose standard streams are the server's.
    pub(crate) attaching: Duration,
    /// What clients are shown that come by https.
    pub(crate) tls: Option<TlsIdentity>,
    /// Where sessions are kept, if not here.
    pub(crate) redis: Option<RedisSettings>,
    /// What clients keep between rounds is sealed with, if somebody says.
    pub(crate) key: Option<SealKey>,
    /// Whether a revision that nobody knows is refused whatever a request is about.
    pub(crate) is_strict: bool,
    pub(crate) is_stateless: bool,
    pub(crate) probing: Probing,
    /// Whether servers of somebody else are asked if they are alive, too.
    pub(crate) probes_remote: bool,
    /// How clients of another era than the server's are served.
    pub(crate) eras: EraSettings,
    /// What requests pass before they reach the server.
    pub(crate) middleware: Middleware,
}

impl Front {
    /// Faces clients at an address, with everything else as usual.
    pub(crate) fn at(host: String, port: u16, mode: Dialect) -> Self {
        Self {
            host,
            port,
            mode,
            origins: Vec::new(),
            forwarded: Forwarded::default(),
            limits: Limits::default(),
            attaching: Attachment::PATIENCE,
            tls: None,
            redis: None,
            key: None,
            is_strict: false,
            is_stateless: false,
            probing: Probing::default(),
            probes_remote: false,
            eras: EraSettings::default(),
            middleware: Middleware::default(),
        }
    }

    /// What a document and the environment say.
    pub(crate) fn of(config: &RunConfig, variables: Variables<'_>) -> Result<Self, Hinted> {
        let wrong = |field: &str, cause: String| unusable(&format!("{field}: {cause}"), variables);
        let port = u16::try_from(config.port).map_err(|_| wrong("port", format!("{} is no port", config.port)))?;
        let mode = match config.proxy_mode {
            ProxyMode::Sse => Dialect::Sse,
            ProxyMode::StreamableHttp | ProxyMode::Other(_) => Dialect::Streamable,
        };
        let mut front = Self::at(host(config, variables), port, mode);
        front.origins.clone_from(&config.allowed_origins);
        front.forwarded = Forwarded { is_trusted: config.trust_proxy_headers, prefix: config.endpoint_prefix.clone() };
        front.is_stateless = config.stateless;
        front.is_strict = config.strict_protocol_validation;
        if front.is_strict && (config.transport != Transport::Stdio || mode != Dialect::Streamable) {
            let ignored = "strict_protocol_validation";
            tracing::warn!(
                ignored,
                "it is for servers on standard input and output that clients use as streamable HTTP"
            );
        }
        front.redis = config.scaling_config.as_ref().and_then(|scaling| redis(scaling, variables));
        if !config.session_ttl.0.is_empty() {
            let lifetime = config.session_ttl.parse().map_err(|error| wrong("session_ttl", error.to_string()))?;
            if lifetime > Duration::ZERO {
                front.limits.session = lifetime;
                // Whoever wants sessions to be idle for days wants them to live for days.
                front.limits.session_in_all = front.limits.session_in_all.max(lifetime);
            }
        }
        let mut body_limits = Vec::new();
        for step in &config.middleware_configs {
            let misfit =
                |error: &dyn std::fmt::Display| wrong("middleware_configs", format!("{}: {error}", step.type_));
            match step.type_ {
                MiddlewareType::BodyLimit => {
                    let limit: BodyLimitParameters = step.read_parameters().map_err(|error| misfit(&error))?;
                    let bytes = usize::try_from(limit.max_bytes).ok().filter(|bytes| *bytes > 0);
                    body_limits.push(bytes.unwrap_or(front.limits.body_bytes));
                }
                MiddlewareType::Origin => {
                    let origins: OriginParameters = step.read_parameters().map_err(|error| misfit(&error))?;
                    front.origins.extend(origins.allowed_origins);
                }
                _ => {}
            }
        }
        // Each step refuses what is larger than its own limit, so the smallest one counts, wherever it stands.
        front.limits.body_bytes = body_limits.into_iter().min().unwrap_or(front.limits.body_bytes);
        front.eras = eras::read(&EraArgs::default(), variables)?;
        front.read(variables)?;
        Ok(front)
    }

    /// Where sessions are kept. A store that cannot be used is an error: clients would lose their sessions.
    pub(crate) async fn store(&self) -> Result<SessionStore, Hinted> {
        let store = match &self.redis {
            None => SessionStore::memory(),
            Some(settings) => SessionStore::redis(Redis::connect(settings).await.map_err(|error| {
                Hinted::new(format!("sessions cannot be kept: {error}"))
                    .hint("see that Redis runs there and that its number of databases and its password are right")
                    .hint(format!("the password is taken from the variable {}", runner::SESSION_REDIS_PASSWORD))
            })?),
        };
        Ok(store.with_key(self.key.clone()))
    }

    /// What the environment says. A value that makes no sense is told and counts for nothing, unless it is a secret.
    pub(crate) fn read(&mut self, variables: Variables<'_>) -> Result<(), Hinted> {
        self.key = seal_key::find(variables)?;
        let time = |name: &str, usual: Duration| {
            let Some(text) = variables(name).filter(|text| !text.is_empty()) else { return usual };
            match duration::parse(&text) {
                Ok(time) if time > Duration::ZERO => time,
                _ => {
                    tracing::warn!(name, text, usual = ?usual, "no duration above zero; going by the default");
                    usual
                }
            }
        };
        self.limits.request = time(runner::PROXY_REQUEST_TIMEOUT, self.limits.request);
        self.attaching = time(runner::ATTACH_TIMEOUT, self.attaching);
        let usual = Probing::default();
        let failures = variables(runner::HEALTH_CHECK_FAILURE_THRESHOLD).filter(|text| !text.is_empty());
        let failures = failures.map(|text| text.parse().ok().filter(|count| *count >= 1).ok_or(text));
        self.probing = Probing {
            interval: time(runner::HEALTH_CHECK_INTERVAL, usual.interval),
            patience: time(runner::HEALTH_CHECK_PING_TIMEOUT, usual.patience),
            retry: time(runner::HEALTH_CHECK_RETRY_DELAY, usual.retry),
            failures: match failures {
                None => usual.failures,
                Some(Ok(count)) => count,
                Some(Err(text)) => {
                    let name = runner::HEALTH_CHECK_FAILURE_THRESHOLD;
                    tracing::warn!(name, text, usual = usual.failures, "no number above zero; going by the default");
                    usual.failures
                }
            },
        };
        let asked = variables(runner::REMOTE_HEALTH_CHECKS).unwrap_or_default();
        self.probes_remote = asked.eq_ignore_ascii_case("true") || asked == "1";
        Ok(())
    }
}

/// The Redis of a document. Its password is the environment's.
fn redis(scaling: &ScalingConfig, variables: Variables<'_>) -> Option<RedisSettings> {
    let told = scaling.session_redis.as_ref()?;
    let usual = RedisSettings::new(&told.address);
    let key_prefix = if told.key_prefix.is_empty() { usual.key_prefix } else { told.key_prefix.clone() };
    let password = variables(runner::SESSION_REDIS_PASSWORD).filter(|password| !password.is_empty());
    Some(RedisSettings { address: usual.address, database: told.db.into(), key_prefix, password })
}

/// Where to listen. A pod without a network of its own has one address.
pub(super) fn host(config: &RunConfig, variables: Variables<'_>) -> String {
    let host = if config.host.is_empty() { LOCAL } else { &config.host };
    let is_any = host.parse().is_ok_and(|address: IpAddr| address.is_unspecified());
    variables(POD_ADDRESS_VARIABLE).filter(|_| is_any).unwrap_or_else(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str, variables: &[(&str, &str)]) -> Result<Front, String> {
        let config = RunConfig::from_json(&format!("{{\"transport\": \"sse\", {text}}}")).unwrap();
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Front::of(&config, &find).map_err(|error| error.to_string())
    }

    #[test]
    fn a_document_and_the_environment_make_a_front() {
        let steps = r#"[{"type": "bodylimit", "parameters": {"max_bytes": 9}},
            {"type": "origin", "parameters": {"allowed_origins": ["https://b"]}}]"#;
        let text = format!(
            r#""port": 8080, "host": "0.0.0.0", "session_ttl": "5m", "allowed_origins": ["https://a"],
            "strict_protocol_validation": true, "endpoint_prefix": "/x", "trust_proxy_headers": true, "middleware_configs": {steps},
            "scaling_config": {{"session_redis": {{"address": "redis:6379", "db": 2}}}}"#
        );
        let variables = [
            ("THV_SESSION_REDIS_PASSWORD", "honey"),
            ("SKEP_POD_ADDRESS", "127.244.0.2"),
            ("TOOLHIVE_PROXY_REQUEST_TIMEOUT", "90s"),
            ("TOOLHIVE_HEALTH_CHECK_INTERVAL", "-1s"),
            ("TOOLHIVE_HEALTH_CHECK_FAILURE_THRESHOLD", "2"),
            ("TOOLHIVE_REMOTE_HEALTHCHECKS", "TRUE"),
            ("SKEP_REQUEST_STATE_KEY", "wax and honey, wax and honey, wax"),
        ];
        let front = front(&text, &variables).unwrap();
        assert_eq!((front.host.as_str(), front.port, front.mode), ("127.244.0.2", 8080, Dialect::Sse));
        assert_eq!(front.origins, ["https://a", "https://b"]);
        assert_eq!((front.limits.body_bytes, front.limits.session), (9, Duration::from_mins(5)));
        assert_eq!(front.limits.request, Duration::from_secs(90));
        assert_eq!((front.probing.interval, front.probing.failures), (Duration::from_secs(10), 2));
        assert_eq!(front.limits.session_in_all, Duration::from_hours(24));
        assert!(front.probes_remote && front.forwarded.is_trusted && front.is_strict && front.key.is_some());
        assert!(!format!("{front:?}").contains("honey"), "secrets are not shown");
        let redis = front.redis.unwrap();
        assert_eq!((redis.address.as_str(), redis.database), ("redis:6379", 2));
        assert_eq!((redis.key_prefix.as_str(), redis.password.as_deref()), ("thv:proxy:session:", Some("honey")));
    }

    #[test]
    fn of_several_limits_of_bodies_the_smallest_counts() {
        let usual = Limits::default().body_bytes;
        for (limits, expected) in [
            (&[][..], usual),
            (&[9], 9),
            (&[9, 20], 9),
            (&[20, 9], 9),
            (&[0, 9], 9),
            (&[-1, i64::MAX], usual),
            (&[i64::MAX, 0], usual),
        ] {
            let step = |bytes: &i64| format!(r#"{{"type": "bodylimit", "parameters": {{"max_bytes": {bytes}}}}}"#);
            let steps: Vec<String> = limits.iter().map(step).collect();
            let front = front(&format!(r#""middleware_configs": [{}]"#, steps.join(",")), &[]).unwrap();
            assert_eq!(front.limits.body_bytes, expected, "{limits:?}");
        }
    }

    #[tokio::test]
    async fn sessions_are_kept_with_the_key_of_the_environment() {
        let key = ("SKEP_REQUEST_STATE_KEY", "wax and honey, wax and honey, wax");
        for (variables, expected) in [(&[][..], "key: None"), (&[key], "key: Some(SealKey)")] {
            let store = front("\"port\": 1", variables).unwrap().store().await.unwrap();
            assert!(format!("{store:?}").contains(expected), "{store:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_or_told() {
        assert!(front(r#""port": 70000"#, &[]).unwrap_err().contains("port: 70000"));
        assert!(front(r#""session_ttl": "-5m""#, &[]).unwrap_err().contains("session_ttl"));
        assert!(front(r#""session_ttl": "soon""#, &[]).unwrap_err().contains("session_ttl"));
        let zero = front(r#""session_ttl": "0s""#, &[("TOOLHIVE_HEALTH_CHECK_FAILURE_THRESHOLD", "0")]).unwrap();
        assert_eq!((zero.limits.session, zero.probing.failures), (Limits::default().session, 5));
        let days = front(r#""session_ttl": "48h""#, &[]).unwrap().limits;
        assert_eq!((days.session, days.session_in_all), (Duration::from_hours(48), Duration::from_hours(48)));
        assert!(front("\"port\": 1", &[("SKEP_REQUEST_STATE_KEY", "short")]).unwrap_err().contains("too short"));
    }
}
