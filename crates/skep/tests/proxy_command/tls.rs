//! Clients that come by https.

use std::fs;
use std::process::Command;
use std::time::Instant;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::{ANY, LIMIT, Serving};

/// A folder with the certificate of an authority, and one of `localhost` that it vouches for with its key.
fn certificates() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    for (name, text) in
        [("ca.crt", authority.pem()), ("proxy.crt", certificate.pem()), ("proxy.key", key.serialize_pem())]
    {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn a_proxy_with_a_certificate_is_reached_by_https_and_by_nothing_else() {
    let folder = certificates();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (skep, certificate, key) = (cargo_bin!("skep").to_str().unwrap(), file("proxy.crt"), file("proxy.key"));
    let flags = ["--tls-cert", &certificate, "--tls-key", &key, "--", skep, "demo", "echo", "--transport", "stdio"];
    let secured = Serving::start(&[&ANY[..], &flags].concat());
    let port = secured.address.rsplit(':').next().unwrap();
    // Another proxy is a client that verifies what it is shown.
    let url = format!("https://localhost:{port}/mcp");
    let client = [&ANY[..], &["--url", &url]].concat();
    let trusting = Serving::start_with(&client, &[("SSL_CERT_FILE", &file("ca.crt"))]);
    assert_eq!(trusting.call("echo", &json!({"message": "sealed"}))["content"][0]["text"], "sealed");
    let by_http = Serving::start(&[&ANY[..], &["--url", &format!("http://localhost:{port}/mcp")]].concat());
    let hello = super::message(1, "initialize", &json!({}));
    let begun = Instant::now();
    let answer = loop {
        let status = super::Request::post(&hello).send(&by_http.address).status;
        // It has not looked for its server yet.
        if status != 503 || begun.elapsed() > LIMIT {
            break status;
        }
    };
    assert_eq!(answer, 502);
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let folder = certificates();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key, other) = (file("proxy.crt"), file("proxy.key"), file("ca.crt"));
    for (flags, code, told) in [
        (vec!["--tls-cert", &certificate], 2, "--tls-key"),
        (vec!["--tls-cert", "/no/such/file", "--tls-key", &key], 1, "--tls-cert: cannot read /no/such/file"),
        (vec!["--tls-cert", &certificate, "--tls-key", &other], 1, "the private key is not PEM that can be read"),
        (vec!["--tls-cert", &other, "--tls-key", &key], 1, "cannot be used with the private key"),
    ] {
        let output =
            Command::new(cargo_bin!("skep")).args(ANY).args(&flags).args(["--url", "http://a"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(told), "{said}");
        assert!(code == 2 || said.contains("hint: "), "{said}");
    }
}
