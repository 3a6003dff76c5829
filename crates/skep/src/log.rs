//! What the program notices while it works, on standard error.

mod json;

use std::io::{self, Write as _};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::screen::Above;

/// How what is noticed is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Warnings and worse, as lines for people.
    Usual,
    /// As JSON lines, for those who gather the logs of pods.
    Json {
        /// Whether everything is told that may help to find a mistake.
        debug: bool,
    },
}

/// A server has refused a request: whoever has made it says so.
const HUSHED: &str = "kube_client::client::builder=off";

/// Begins to tell what deserves attention, or what `RUST_LOG` asks for. What cannot be understood in it is told and left
/// out.
pub(crate) fn begin(telling: Telling) {
    let level = match telling {
        Telling::Usual => "warn",
        Telling::Json { debug: false } => "info",
        Telling::Json { debug: true } => "info,skep=debug,skep_proxy=debug,skep_operator=debug",
    };
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| format!("{level},{HUSHED}"));
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).parse_lossy(wanted);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Above).with_ansi(false);
    // When standard error cannot be written, there is nobody to tell. The only way to fail is that somebody listens
    // already, as a test may.
    let _ = match telling {
        Telling::Usual => log.log_internal_errors(false).try_init(),
        Telling::Json { .. } => log.log_internal_errors(false).event_format(json::Lines).try_init(),
    };
}

/// Tells why the program ends, in the form of everything else. Nobody can turn that off.
pub(crate) fn end(telling: Telling, report: &str) {
    if matches!(telling, Telling::Json { .. }) && tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!("{}", report.trim_end());
        return;
    }
    // When standard error cannot be written either, the exit code has to say it.
    let _ = io::stderr().write_all(report.as_bytes());
}
