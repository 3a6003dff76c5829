//! Timeouts, health checks and what happens when a backend fails.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::duration::DurationText;
use crate::raw::RawObject;

/// How long a request to a backend may take when nothing else is said.
pub const DEFAULT_TIMEOUT: &str = "30s";
/// How often backends are checked when nothing else is said.
pub const DEFAULT_HEALTH_CHECK_INTERVAL: &str = "30s";
/// How long a check may take when nothing else is said.
pub const DEFAULT_HEALTH_CHECK_TIMEOUT: &str = "10s";
/// How often the status is reported when nothing else is said.
pub const DEFAULT_STATUS_REPORTING_INTERVAL: &str = "30s";
/// How many failed checks in a row make a backend unhealthy when nothing else is said.
pub const DEFAULT_UNHEALTHY_THRESHOLD: i64 = 3;
/// How many failures in a row open a circuit breaker when nothing else is said.
pub const DEFAULT_CIRCUIT_FAILURE_THRESHOLD: i64 = 5;
/// How long a circuit breaker stays open when nothing else is said.
pub const DEFAULT_CIRCUIT_TIMEOUT: &str = "60s";

/// Timeouts, health checks and what happens when a backend fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operational {
    /// How failing backends are noticed and what follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_handling: Option<FailureHandling>,
    /// Set it to debug to log more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
    /// How long requests to backends may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// Levels of logging that can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    #[default]
    Debug,
}

/// How long requests to backends may take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// How long a request to any backend may take. Defaults to 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_TIMEOUT))]
    pub default: Option<DurationText>,
    /// How long a request to a single backend may take, by the backend's name.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub per_workload: BTreeMap<String, DurationText>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// How failing backends are noticed and what follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureHandling {
    /// Sparing a failing backend further requests for a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit_breaker: Option<CircuitBreaker>,
    /// How often backends are checked. Defaults to 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_HEALTH_CHECK_INTERVAL))]
    pub health_check_interval: Option<DurationText>,
    /// How long a check may take. It must be shorter than the interval. Defaults to 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_HEALTH_CHECK_TIMEOUT))]
    pub health_check_timeout: Option<DurationText>,
    /// What happens when some of the backends cannot be reached. Defaults to fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = PartialFailureMode::default()))]
    pub partial_failure_mode: Option<PartialFailureMode>,
    /// How often the server writes what it knows about its backends into the status. Defaults to 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_STATUS_REPORTING_INTERVAL))]
    pub status_reporting_interval: Option<DurationText>,
    /// How many failed checks in a row make a backend unhealthy. At least 1. Defaults to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null, "default" = DEFAULT_UNHEALTHY_THRESHOLD))]
    pub unhealthy_threshold: Option<i64>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// What happens when some of the backends cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartialFailureMode {
    /// A request that needs all backends fails.
    #[default]
    Fail,
    /// A request is answered with what the other backends offer.
    BestEffort,
}

/// Sparing a failing backend further requests for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CircuitBreaker {
    /// Whether failing backends are spared. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
    /// How many failures in a row it takes. Defaults to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("format" = null, "default" = DEFAULT_CIRCUIT_FAILURE_THRESHOLD))]
    pub failure_threshold: Option<i64>,
    /// How long the backend is spared before it is tried again. At least 1s. Defaults to 60s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_CIRCUIT_TIMEOUT, "x-kubernetes-validations" = [
        { "rule": "self == '' || duration(self) >= duration('1s')", "message": "timeout must be >= 1s" },
    ]))]
    pub timeout: Option<DurationText>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
