//! What the program notices while it works, on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::screen::Above;

/// Warnings and worse, except that a server has refused a request: whoever has made it says so.
const USUAL: &str = "warn,kube_client::client::builder=off";

/// Begins to tell what deserves attention, or what `RUST_LOG` asks for. What cannot be understood in it is told and left
/// out.
pub(crate) fn begin() {
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| USUAL.to_owned());
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).parse_lossy(wanted);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Above).with_ansi(false);
    // When standard error cannot be written, there is nobody to tell. The only way to fail is that somebody listens
    // already, as a test may.
    let _ = log.log_internal_errors(false).try_init();
}
