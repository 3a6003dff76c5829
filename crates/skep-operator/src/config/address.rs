//! Addresses that proxies ask at. One that cannot be asked is told where it is written, not by a proxy that does not start.

use url::Url;

/// Whether somebody may be asked without TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plain<'a> {
    /// The address says it.
    Allowed,
    /// Only if that is switched on; how, for whoever has not.
    Switched(&'a str),
    /// Never.
    Refused,
}

/// Judges an address. One that is not set is somebody else's affair.
pub(crate) fn check(field: &str, url: &str, plain: Plain<'_>) -> Result<(), String> {
    if url.is_empty() {
        return Ok(());
    }
    let parsed = Url::parse(url).map_err(|error| format!("{field} {url:?} is not a URL: {error}"))?;
    match (parsed.scheme(), plain) {
        ("https", _) | ("http", Plain::Allowed) => {}
        ("http", Plain::Switched(how)) => return Err(format!("{field} {url:?} must use https; {how}")),
        ("http", Plain::Refused) => return Err(format!("{field} {url:?} must use https")),
        (other, _) => return Err(format!("{field} {url:?} must use https, not {other}")),
    }
    if parsed.has_host() { Ok(()) } else { Err(format!("{field} {url:?} must have a host")) }
}
