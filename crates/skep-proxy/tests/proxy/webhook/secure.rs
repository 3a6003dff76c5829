//! TLS, and keys in files that somebody replaces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use skep_proxy::fetch::TlsFiles;
use skep_proxy::middleware::{FailurePolicy, Power, Secret, WebhookSettings, Webhooks};

use super::{allowing, proxy, settings, step};
use crate::authz::hive;
use crate::http::{Request, call};
use crate::tls::Authority;
use crate::transparent::server::Server;

/// A folder as a Secret is mounted.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Puts a file in the place of another one, at once.
    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let (new, path) = (self.path("new"), self.path(name));
        std::fs::write(&new, content).unwrap();
        std::fs::rename(new, &path).unwrap();
        path
    }
}

fn secured(callback: &Server, files: TlsFiles) -> WebhookSettings {
    let port = callback.address.rsplit(':').next().unwrap();
    let url = format!("https://localhost:{port}/hook");
    WebhookSettings { url, tls: files, ..settings("", FailurePolicy::Fail) }
}

async fn asked(server: &Server, settings: WebhookSettings) -> (crate::transparent::server::Before, u16) {
    let before = proxy(server, vec![step(Power::Refuse, vec![settings])], vec![]).await;
    let status = before.send(Request::post(&call(7, "weigh"))).await.status;
    (before, status)
}

#[tokio::test]
async fn a_callback_is_trusted_by_the_authority_in_a_file_also_when_it_changes() {
    let (old, new, mounted) = (Authority::new(), Authority::new(), Mounted::new());
    let server = Server::start(hive).await;
    let hook = Server::start_with(Some(new.acceptor("localhost", &[])), allowing).await;
    let authorities = Some(mounted.put("ca.crt", old.pem()));
    let (before, status) = asked(&server, secured(&hook, TlsFiles { authorities, ..TlsFiles::default() })).await;
    assert_eq!(status, 403, "nobody vouches for it");
    // A file that is half written changes nothing.
    mounted.put("ca.crt", "-----BEGIN");
    assert_eq!(before.send(Request::post(&call(7, "weigh"))).await.status, 403);
    mounted.put("ca.crt", new.pem());
    assert_eq!(before.send(Request::post(&call(7, "weigh"))).await.status, 200);
}

#[tokio::test]
async fn files_that_vanish_under_load_change_nothing() {
    let (authority, mounted) = (Authority::new(), Mounted::new());
    let server = Server::start(hive).await;
    let hook = Server::start_with(Some(authority.acceptor("localhost", &[])), allowing).await;
    let path = mounted.put("ca.crt", authority.pem());
    let files = TlsFiles { authorities: Some(path.clone()), ..TlsFiles::default() };
    let (before, status) = asked(&server, secured(&hook, files)).await;
    assert_eq!(status, 200);
    let load = |_| before.send(Request::post(&call(7, "weigh")));
    let (answers, ()) = tokio::join!(futures::future::join_all((0..40).map(load)), async {
        std::fs::remove_file(&path).unwrap();
    });
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(load(0).await.status, 200, "those that were read last count");
}

#[tokio::test]
async fn a_callback_that_wants_a_certificate_gets_ours() {
    let (authority, clients, mounted) = (Authority::new(), Authority::new(), Mounted::new());
    let server = Server::start(hive).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(clients.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
    let hook = Server::start_with(Some(authority.acceptor_for("localhost", verifier)), allowing).await;
    let files = |identity| TlsFiles {
        authorities: Some(mounted.put("ca.crt", authority.pem())),
        identity,
        is_unverified: false,
    };
    assert_eq!(asked(&server, secured(&hook, files(None))).await.1, 403, "it does not know us");
    let (certificate, key) = clients.vouch("proxy");
    let identity = Some((mounted.put("tls.crt", certificate), mounted.put("tls.key", key)));
    assert_eq!(asked(&server, secured(&hook, files(identity))).await.1, 200);
}

#[tokio::test]
async fn everybody_is_trusted_only_when_somebody_says_so() {
    let (authority, server) = (Authority::new(), Server::start(hive).await);
    let hook = Server::start_with(Some(authority.acceptor("elsewhere", &[])), allowing).await;
    let files = TlsFiles { is_unverified: true, ..TlsFiles::default() };
    assert_eq!(asked(&server, secured(&hook, files)).await.1, 200);
}

#[tokio::test]
async fn trap_53_a_new_key_of_signatures_counts_at_once_and_none_counts_as_a_failure() {
    let (server, hook, mounted) = (Server::start(hive).await, Server::start(allowing).await, Mounted::new());
    let secret = Some(Secret::File(mounted.put("hmac", "one")));
    let (before, status) =
        asked(&server, WebhookSettings { secret, ..settings(&hook.address, FailurePolicy::Fail) }).await;
    assert_eq!(status, 200);
    let is_signed_with = |content: &str| {
        let told = hook.seen().remove(0);
        let seconds = told.header("x-toolhive-timestamp").unwrap();
        let signed = [format!("{seconds}.").as_bytes(), &told.body].concat();
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, content.as_bytes());
        told.header("x-toolhive-signature").unwrap()
            == format!("sha256={}", hex::encode(aws_lc_rs::hmac::sign(&key, &signed)))
    };
    assert!(is_signed_with("one"));
    mounted.put("hmac", "two\n");
    assert_eq!(before.send(Request::post(&call(7, "weigh"))).await.status, 200);
    assert!(is_signed_with("two\n"), "every byte of the file belongs to the key");
    std::fs::remove_file(mounted.path("hmac")).unwrap();
    assert_eq!(before.send(Request::post(&call(7, "weigh"))).await.status, 403);
    assert!(hook.seen().is_empty());
}

#[test]
fn what_is_wrong_with_the_settings_is_told_at_the_start() {
    let mounted = Mounted::new();
    let (authority, empty) = (Authority::new(), mounted.put("empty", ""));
    let told = |settings| match Webhooks::new(Power::Refuse, vec![settings], "hive", "") {
        Ok(_) => panic!("it is taken"),
        Err(error) => error.to_string(),
    };
    let good = || settings("127.0.0.1:1", FailurePolicy::Fail);
    let secure = || WebhookSettings { url: "https://localhost/".to_owned(), tls: TlsFiles::default(), ..good() };
    let plain = WebhookSettings { tls: TlsFiles::default(), ..good() };
    assert!(told(plain).contains("must use https"));
    assert!(told(WebhookSettings { url: "ftp://a/".to_owned(), ..good() }).contains("https://"));
    for host in ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"] {
        let said = told(WebhookSettings { url: format!("http://{host}/"), ..good() });
        assert!(said.contains(host) && said.contains("not allowed"), "{said}");
    }
    assert!(told(WebhookSettings { name: String::new(), ..good() }).contains("needs a name"));
    let secret = Some(Secret::File(empty.clone()));
    assert!(told(WebhookSettings { secret, ..good() }).contains("empty"));
    let missing = |path: &Path| TlsFiles { authorities: Some(path.to_owned()), ..TlsFiles::default() };
    assert!(told(WebhookSettings { tls: missing(&mounted.path("nowhere")), ..secure() }).contains("nowhere"));
    assert!(told(WebhookSettings { tls: missing(&empty), ..secure() }).contains("there is none in it"));
    let (certificate, _) = authority.vouch("proxy");
    let (_, other_key) = authority.vouch("proxy");
    let identity = Some((mounted.put("tls.crt", certificate), mounted.put("tls.key", other_key)));
    let mismatched = TlsFiles { identity, ..missing(&mounted.put("ca.crt", authority.pem())) };
    assert!(told(WebhookSettings { tls: mismatched, ..secure() }).contains("cannot be used with the private key"));
}
