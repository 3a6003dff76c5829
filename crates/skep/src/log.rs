//! What the program notices while it works, on standard error.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Begins to tell what deserves attention: warnings and worse, or what `RUST_LOG` asks for. What cannot be understood
/// in it is told and left out.
pub(crate) fn begin() {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).from_env_lossy();
    // The only way to fail is that somebody listens already, as a test may.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).try_init();
}
