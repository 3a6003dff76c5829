use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use kube::config::Kubeconfig;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection, SignatureScheme};
use serde_json::{Value, json};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

use super::*;
use crate::auth::identity::Certificate;
use crate::auth::tls::{ClientCertificates, server_config};

fn names() -> Vec<String> {
    vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()]
}

fn addresses() -> Vec<IpAddr> {
    vec![Ipv4Addr::LOCALHOST.into(), "10.96.0.1".parse().unwrap(), "::1".parse().unwrap()]
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn everything_is_made_once_and_private() {
    let data = TempDir::new().unwrap();
    let first = Pki::open(data.path()).unwrap();
    let server = first.server(&names(), &addresses()).unwrap();
    let key = first.service_account_key().unwrap();
    let kubeconfig = data.path().join("kubeconfig");
    first.write_kubeconfig(&kubeconfig, "https://127.0.0.1:6443").unwrap();
    let written = fs::read_to_string(&kubeconfig).unwrap();
    for file in ["pki/ca.key", "pki/server.key", "pki/admin.key", "pki/service-accounts.key", "kubeconfig"] {
        assert_eq!(mode(&data.path().join(file)), 0o600, "{file}");
    }
    assert_eq!(mode(&data.path().join("pki")), 0o700);

    let second = Pki::open(data.path()).unwrap();
    assert_eq!(second.authority_certificate(), first.authority_certificate());
    assert_eq!(second.server(&names(), &addresses()).unwrap().certificate, server.certificate);
    assert_eq!(second.service_account_key().unwrap().id(), key.id());
    second.write_kubeconfig(&kubeconfig, "https://127.0.0.1:6443").unwrap();
    assert_eq!(fs::read_to_string(&kubeconfig).unwrap(), written);
    assert!(!format!("{server:?} {second:?}").contains("PRIVATE"));
}

#[test]
fn certificates_are_renewed_in_time_and_when_addresses_change() {
    let data = TempDir::new().unwrap();
    let now = OffsetDateTime::now_utc();
    let first = Pki::open_at(data.path(), now).unwrap();
    let server = first.server(&names(), &addresses()).unwrap();
    let other = first.server(&names(), &addresses()[..1]).unwrap();
    assert_ne!(server.certificate, other.certificate);

    let later = Pki::open_at(data.path(), now + Duration::days(330)).unwrap();
    assert_eq!(later.authority_certificate(), first.authority_certificate());
    assert_ne!(later.server(&names(), &addresses()[..1]).unwrap().certificate, other.certificate);

    let much_later = Pki::open_at(data.path(), now + Duration::days(9 * 365)).unwrap();
    assert_ne!(much_later.authority_certificate(), first.authority_certificate());
    // The key of the authority stays, so what it has signed is still recognised.
    assert!(much_later.authority.has_signed(&server.certificate));
}

#[test]
fn a_crash_between_two_writes_does_no_harm() {
    let data = TempDir::new().unwrap();
    let now = OffsetDateTime::now_utc();
    Pki::open_at(data.path(), now).unwrap().admin().unwrap();
    for file in ["pki/admin.crt", "pki/ca.crt"] {
        fs::remove_file(data.path().join(file)).unwrap();
    }
    let admin = Pki::open_at(data.path(), now).unwrap().admin().unwrap();
    let renewed = Pki::open_at(data.path(), now + Duration::days(330)).unwrap().admin().unwrap();
    assert_eq!(admin.key(), renewed.key());
    assert_ne!(admin.certificate, renewed.certificate);
    // What the crash has left of a write is in nobody's way.
    fs::write(data.path().join("pki/admin.crt.new"), "half").unwrap();
    Pki::open_at(data.path(), now + Duration::days(900)).unwrap().admin().unwrap();
    assert!(!data.path().join("pki/admin.crt.new").exists());
}

#[test]
fn files_that_do_not_fit_are_errors_and_stay_as_they_are() {
    let data = TempDir::new().unwrap();
    let other = TempDir::new().unwrap();
    let pki = Pki::open(data.path()).unwrap();
    pki.server(&names(), &addresses()).unwrap();
    let foreign = Pki::open(other.path()).unwrap();
    foreign.server(&names(), &addresses()).unwrap();
    let swap = |file: &str, text: &str| {
        let path = data.path().join("pki").join(file);
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, text).unwrap();
        move || fs::write(&path, before).unwrap()
    };
    let of_other = |file: &str| fs::read_to_string(other.path().join("pki").join(file)).unwrap();
    let open = || Pki::open(data.path()).and_then(|pki| pki.server(&names(), &addresses())).map(|_| ());
    for (file, text, expected) in [
        ("ca.crt", "junk".to_owned(), "not a certificate in PEM form"),
        ("ca.crt", of_other("server.crt"), "not the certificate of an authority"),
        ("ca.key", "junk".to_owned(), "not a private key in PEM form"),
        ("ca.key", of_other("ca.key"), "not the key of the certificate beside it"),
        ("server.crt", of_other("server.crt"), "is not from this server's authority"),
        ("server.crt", String::new(), "not a certificate in PEM form"),
        ("server.key", of_other("server.key"), "not the key of the certificate beside it"),
    ] {
        let restore = swap(file, &text);
        let error = open().unwrap_err().to_string();
        assert!(error.contains(expected), "{file}: {error}");
        assert!(error.contains("pki"), "{error}");
        assert_eq!(fs::read_to_string(data.path().join("pki").join(file)).unwrap(), text);
        restore();
    }
    fs::remove_file(data.path().join("pki/ca.key")).unwrap();
    assert!(matches!(open(), Err(PkiError::Half { .. })));
}

#[test]
fn a_kubeconfig_that_is_not_ours_to_change_is_left_alone() {
    let data = TempDir::new().unwrap();
    let pki = Pki::open(data.path()).unwrap();
    let path = data.path().join("kubeconfig");
    let other = TempDir::new().unwrap();
    let foreign = other.path().join("kubeconfig");
    Pki::open(other.path()).unwrap().write_kubeconfig(&foreign, "https://127.0.0.1:1").unwrap();
    for (text, problem) in [
        ("not: [yaml", "cannot be read as a kubeconfig: yaml: "),
        ("just text", "cannot be read as a kubeconfig"),
        ("clusters: 5", "cannot be read as a kubeconfig"),
        (&fs::read_to_string(&foreign).unwrap(), "is not from this server's authority"),
    ] {
        fs::write(&path, text).unwrap();
        let error = pki.write_kubeconfig(&path, "https://127.0.0.1:2").unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("kubeconfig"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn what_people_put_into_the_kubeconfig_stays() {
    let data = TempDir::new().unwrap();
    let pki = Pki::open(data.path()).unwrap();
    let path = data.path().join("kubeconfig");
    let read = || Kubeconfig::from_yaml(&fs::read_to_string(&path).unwrap()).unwrap();
    for empty in ["", "# mine\n", "apiVersion: v1\nkind: Config\n"] {
        fs::write(&path, empty).unwrap();
        pki.write_kubeconfig(&path, "https://127.0.0.1:2").unwrap();
        assert_eq!(read().current_context.as_deref(), Some("skep"));
    }
    // Somebody adds a cluster of theirs, uses it, and likes another namespace of ours.
    let mut edited: Value = serde_json::to_value(read()).unwrap();
    edited["clusters"].as_array_mut().unwrap().push(json!({ "name": "work", "cluster": { "server": "https://work" } }));
    edited["contexts"].as_array_mut().unwrap().push(json!({ "name": "work", "context": { "cluster": "work" } }));
    edited["contexts"][0]["context"]["namespace"] = "bees".into();
    edited["current-context"] = "work".into();
    edited["preferences"] = json!({ "colors": true });
    fs::write(&path, edited.to_string()).unwrap();
    pki.write_kubeconfig(&path, "https://127.0.0.1:2").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), edited.to_string(), "nothing of ours had changed");
    pki.write_kubeconfig(&path, "https://127.0.0.1:3").unwrap();
    edited["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:3".into();
    let written: Value = serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(written, edited);
    assert_eq!(mode(&path), 0o600);
}

/// Shows a certificate even if the key is not its own, which a well-behaved client would not.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl Shown {
    fn new(identity: &Identity) -> Self {
        let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(identity.key().as_bytes()).unwrap();
        let key = rustls::crypto::aws_lc_rs::default_provider().key_provider.load_private_key(key).unwrap();
        Self(Arc::new(CertifiedKey::new(vec![certificate], key)))
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A handshake in memory: what the server learns of the client, or why there is none.
fn handshake(pki: &Pki, trusted: &str, client: Option<&Identity>) -> Result<Certificate, rustls::Error> {
    let server = pki.server(&names(), &addresses()).unwrap();
    let clients = ClientCertificates::new(pki.authority_certificate()).unwrap();
    let config = server_config(&server, &clients).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let client_config = match client {
        None => builder.with_no_client_auth(),
        Some(identity) => builder.with_client_cert_resolver(Arc::new(Shown::new(identity))),
    };
    let mut server = ServerConnection::new(config).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut client = ClientConnection::new(Arc::new(client_config), name).unwrap();
    for _ in 0..10 {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        let mut read = wire.as_slice();
        while !read.is_empty() {
            server.read_tls(&mut read).unwrap();
        }
        server.process_new_packets()?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire).unwrap();
        let mut read = wire.as_slice();
        while !read.is_empty() {
            client.read_tls(&mut read).unwrap();
        }
        client.process_new_packets()?;
    }
    assert!(!server.is_handshaking());
    Ok(clients.judge(server.peer_certificates(), UnixTime::now()))
}

#[test]
fn clients_are_known_by_their_certificates() {
    let data = TempDir::new().unwrap();
    let pki = Pki::open(data.path()).unwrap();
    let trusted = pki.authority_certificate();
    assert_eq!(handshake(&pki, trusted, None).unwrap(), Certificate::Absent);
    let user = |identity: Identity| match handshake(&pki, trusted, Some(&identity)).unwrap() {
        Certificate::Good(user) => user,
        other => panic!("{other:?}"),
    };
    let admin = user(pki.admin().unwrap());
    assert_eq!(admin.name, "skep-admin");
    assert_eq!(admin.groups, ["system:masters", "system:authenticated"]);
    assert!(admin.extra["authentication.kubernetes.io/credential-id"][0].starts_with("X509SHA256="));
    let node = user(pki.node("n1", &addresses()).unwrap());
    assert_eq!((node.name.as_str(), node.groups[0].as_str()), ("system:node:n1", "system:nodes"));
    assert_eq!(user(pki.client("bob", None).unwrap()).groups, ["system:authenticated"]);
}

#[test]
fn strangers_do_not_get_in() {
    let (data, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (pki, stranger) = (Pki::open(data.path()).unwrap(), Pki::open(other.path()).unwrap());
    let trusted = pki.authority_certificate();
    let judged = |identity: &Identity| handshake(&pki, trusted, Some(identity)).unwrap();
    assert_eq!(judged(&stranger.admin().unwrap()), Certificate::Bad);
    // A server's certificate is not a client's.
    assert_eq!(judged(&pki.server(&names(), &addresses()).unwrap()), Certificate::Bad);
    let expired = Pki::open_at(data.path(), OffsetDateTime::now_utc() - Duration::days(700)).unwrap();
    assert_eq!(judged(&expired.client("late", Some("system:masters")).unwrap()), Certificate::Bad);
    // Whoever shows a certificate without its key gets no connection at all.
    let stolen = Identity::new(pki.admin().unwrap().certificate, stranger.admin().unwrap().key().to_owned());
    assert!(handshake(&pki, trusted, Some(&stolen)).is_err());
    // And clients do not talk to a server that their authority does not know.
    assert!(handshake(&pki, stranger.authority_certificate(), None).is_err());
}

#[test]
fn kube_reads_the_kubeconfig() {
    let data = TempDir::new().unwrap();
    let path = data.path().join("kubeconfig");
    Pki::open(data.path()).unwrap().write_kubeconfig(&path, "https://127.0.0.1:6443").unwrap();
    let config = kube::config::Kubeconfig::read_from(&path).unwrap();
    assert_eq!(config.current_context.as_deref(), Some("skep"));
    assert_eq!(config.clusters[0].cluster.as_ref().unwrap().server.as_deref(), Some("https://127.0.0.1:6443"));
}

#[test]
fn nothing_is_written_before_it_is_saved() {
    let data = TempDir::new().unwrap();
    let path = data.path().join("kubeconfig");
    let prepare = || {
        let pki = Pki::prepare(data.path()).unwrap();
        let server = pki.server(&names(), &addresses()).unwrap();
        let key = pki.service_account_key().unwrap();
        pki.write_kubeconfig(&path, "https://127.0.0.1:6443").unwrap();
        (pki, server.certificate, key.id().to_owned())
    };
    let (pki, server, key) = prepare();
    assert!(pki.is_new());
    assert_eq!(pki.server(&names(), &addresses()).unwrap().certificate, server, "it is the same before it is saved");
    assert_eq!(fs::read_dir(data.path()).unwrap().count(), 0);
    let (rival, ..) = prepare();
    pki.save().unwrap();
    let (saved, same_server, same_key) = prepare();
    assert!(!saved.is_new());
    assert_eq!((same_server, same_key), (server, key));
    assert_eq!(saved.authority_certificate(), pki.authority_certificate());
    let late = rival.save().unwrap_err().to_string();
    assert!(late.contains("ca.key") && late.contains("exists"), "{late}");
    assert_eq!(prepare().0.authority_certificate(), pki.authority_certificate());
}
