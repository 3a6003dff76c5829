//! Names of headers as manifests give them, looked at before a proxy starts with one that it cannot send.

use http::HeaderName;
use skep_api::config::run_config::RESERVED_HEADERS;

/// What is wrong with a header that a proxy is to set.
pub(crate) fn check(name: &str) -> Result<(), String> {
    if RESERVED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the header {name} cannot be set: it says how a message travels, which the proxy decides"));
    }
    match name.parse::<HeaderName>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{name:?} is no name of a header; use letters, digits and hyphens")),
    }
}
