//! Names of headers as manifests give them, looked at before a proxy starts with one that it cannot send.

use http::HeaderName;
use skep_bounds::headers::{OF_MESSAGES, OF_THE_WAY};

/// Whether anything could have that name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    match name.parse::<HeaderName>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{name:?} is no name of a header; use letters, digits and hyphens")),
    }
}

/// What is wrong with a header that a proxy is to set.
pub(crate) fn check(name: &str) -> Result<(), String> {
    if OF_THE_WAY.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the header {name} cannot be set: it says how a message travels, which the proxy decides"));
    }
    check_name(name)
}

/// What is wrong with a header that a credential is to be in.
pub(crate) fn check_credential(name: &str) -> Result<(), String> {
    if OF_MESSAGES.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the header {name} cannot hold a credential: it says what a message is; use another one"));
    }
    check(name)
}
