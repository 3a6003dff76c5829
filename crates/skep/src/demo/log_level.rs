//! The levels of log messages, those of syslog.

use serde_json::Value;

use super::message::Fault;

/// A level, least important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The names, least important first.
    pub(crate) fn names() -> [&'static str; 8] {
        Self::ALL.map(Self::name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        Self::ALL
            .into_iter()
            .find(|level| value.as_str() == Some(level.name()))
            .ok_or_else(|| Fault::invalid_params(format!("{value} is no log level")))
    }
}
