//! How the proxy says who it is to an endpoint of an issuer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// Name and password, each written so that neither can end the other. Nothing unless there are both.
pub(super) fn basic(client: &str, secret: &str) -> Option<HeaderValue> {
    if client.is_empty() || secret.is_empty() {
        return None;
    }
    let escape = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", escape(client), escape(secret)));
    let mut value = HeaderValue::from_str(&format!("Basic {pair}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
