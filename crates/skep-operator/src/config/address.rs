//! Addresses that proxies ask at. One that cannot be asked is told where it is written, not by a proxy that does not start.

use std::net::IpAddr;

use http::Uri;
use skep_bounds::address::{is_barred, is_private};
use url::{Host, Url};

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

/// Where somebody may be. That is judged here for addresses that are numbers; a name is judged by the proxy, when it knows
/// where it leads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach<'a> {
    /// Nobody is asked there: it is a name for something, no more.
    Unasked,
    /// In private networks, too.
    Private,
    /// In private networks only if that is switched on; how, for whoever has not.
    Public(&'a str),
}

/// Judges an address. One that is not set is somebody else's affair.
pub(crate) fn check(field: &str, url: &str, plain: Plain<'_>, reach: Reach<'_>) -> Result<(), String> {
    if url.is_empty() {
        return Ok(());
    }
    let parsed = Url::parse(url).map_err(|error| format!("{field} {url:?} is not a URL: {error}"))?;
    check_user(field, &parsed)?;
    match (parsed.scheme(), plain) {
        ("https", _) | ("http", Plain::Allowed) => {}
        ("http", Plain::Switched(how)) => return Err(format!("{field} {url:?} must use https; {how}")),
        ("http", Plain::Refused) => return Err(format!("{field} {url:?} must use https")),
        (other, _) => return Err(format!("{field} {url:?} must use https, not {other}")),
    }
    if !parsed.has_host() {
        return Err(format!("{field} {url:?} must have a host"));
    }
    check_reach(field, url, &parsed, reach)
}

/// Refuses a user and a password, which are not repeated. It comes before everything that repeats the address.
pub(crate) fn check_user(field: &str, parsed: &Url) -> Result<(), String> {
    if parsed.username().is_empty() && parsed.password().is_none() { Ok(()) } else { Err(with_user(field)) }
}

fn with_user(field: &str) -> String {
    format!("{field} must not have a user or a password in it: a proxy does not send them")
}

/// Judges where an address leads, as far as the address itself tells.
pub(crate) fn check_reach(field: &str, url: &str, parsed: &Url, reach: Reach<'_>) -> Result<(), String> {
    if matches!(reach, Reach::Unasked) {
        return Ok(());
    }
    // A proxy mends nothing, unlike the reader above.
    let written: Uri = url.parse().map_err(|error| format!("{field} {url:?} is not a URL: {error}"))?;
    match written.authority() {
        None => return Err(format!("{field} {url:?} must have a host")),
        Some(authority) if authority.as_str().contains('@') => return Err(with_user(field)),
        Some(_) => {}
    }
    let address: IpAddr = match parsed.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    match reach {
        _ if is_barred(address) => {
            Err(format!("{field} {url:?} is at a link-local or reserved address, which no proxy asks"))
        }
        Reach::Public(how) if is_private(address) => Err(format!("{field} {url:?} is at a private address; {how}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(url: &str, reach: Reach<'_>) -> String {
        check("url", url, Plain::Allowed, reach).err().unwrap_or_default()
    }

    #[test]
    fn addresses_that_no_proxy_asks_are_known_in_every_form() {
        for url in [
            "http://169.254.169.254/latest",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://169.254.169.254./",
            "http://[::ffff:169.254.169.254]/",
            "http://[fe80::1]/",
            "http://0.0.0.0/",
        ] {
            for reach in [Reach::Private, Reach::Public("switch it on")] {
                assert_eq!(
                    said(url, reach),
                    format!("url {url:?} is at a link-local or reserved address, which no proxy asks")
                );
            }
            assert_eq!(said(url, Reach::Unasked), "");
        }
    }

    #[test]
    fn private_addresses_need_a_switch() {
        for url in ["https://10.0.0.5/", "https://127.0.0.1:8443", "https://[fd00::1]/", "https://[::1]"] {
            assert_eq!(said(url, Reach::Private), "");
            assert_eq!(
                said(url, Reach::Public("switch it on")),
                format!("url {url:?} is at a private address; switch it on")
            );
        }
        for url in ["https://1.1.1.1/", "https://hive.example", "https://hive.apiary.svc.cluster.local"] {
            assert_eq!(said(url, Reach::Public("switch it on")), "");
        }
    }

    #[test]
    fn users_and_passwords_are_refused_and_not_repeated() {
        let told = "url must not have a user or a password in it: a proxy does not send them";
        for url in ["https://user:hunter2@hive/", "https://hunter2@hive", "ftp://user:hunter2@hive", "https://@hive/"] {
            assert_eq!(said(url, Reach::Private), told, "{url}");
        }
    }

    #[test]
    fn what_only_a_browser_would_mend_is_refused() {
        for url in ["https:/hive.example", "https:\\\\hive.example", "https://hive.example/a b", "https://hive/\t"] {
            assert_ne!(said(url, Reach::Private), "", "{url}");
        }
    }
}
