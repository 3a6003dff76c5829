//! Headers that are added to requests to a remote server.

use skep_api::config::run_config::HeaderForwardConfig;
use skep_api::kinds::header_forward::HeaderForward;
use skep_api::names::env;

/// The headers of the proxy named `proxy`; secret ones by the identifier of their secret.
pub(super) fn config(proxy: &str, headers: &HeaderForward) -> Option<HeaderForwardConfig> {
    let config = HeaderForwardConfig {
        add_plaintext_headers: headers.add_plaintext_headers.clone(),
        add_headers_from_secret: headers
            .add_headers_from_secret
            .iter()
            .map(|header| (header.header_name.clone(), env::header_forward_identifier(&header.header_name, proxy)))
            .collect(),
        ..HeaderForwardConfig::default()
    };
    (config != HeaderForwardConfig::default()).then_some(config)
}
