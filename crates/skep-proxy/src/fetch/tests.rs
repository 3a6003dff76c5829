//! Where requests must not go, however they are told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use skep_bounds::address::is_barred;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::inside::{BARRED_ADDRESSES, BARRED_FORMS, OWN_ADDRESSES, OWN_FORMS};
use super::resolve::{Judge, Lookup, system};
use super::*;

fn policy() -> FetchPolicy {
    FetchPolicy { allows_http: true, ..FetchPolicy::default() }
}

impl Fetcher {
    /// Somebody for whom all names are at these places, one after the other; the last one stays.
    pub(crate) fn finding(policy: FetchPolicy, places: Vec<SocketAddr>) -> Self {
        let resolver = Resolver::new(policy.allows_private).finding(places);
        Self::judging(policy, resolver).unwrap()
    }

    /// Somebody for whom one place on this machine is not inside.
    pub(crate) fn from_outside(policy: FetchPolicy, outside: SocketAddr) -> Self {
        Self::judging(policy, Resolver::from_outside(outside)).unwrap()
    }
}

fn judging(policy: FetchPolicy, is_closed: Judge, lookup: Lookup) -> Fetcher {
    Fetcher::judging(policy, Resolver { is_closed, lookup }).unwrap()
}

fn get(url: &str) -> Request<Bytes> {
    Request::get(url).header(AUTHORIZATION, "Bearer ours").body(Bytes::new()).unwrap()
}

/// A server on an address of this machine that answers every request alike, and closes. It counts them, and those that
/// come with a credential.
pub(crate) async fn server(address: &str, answer: String) -> (SocketAddr, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let place = listener.local_addr().unwrap();
    let (asked, trusted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&asked), Arc::clone(&trusted));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap_or_default();
            counts.0.fetch_add(1, Ordering::SeqCst);
            if String::from_utf8_lossy(&head[..read]).to_lowercase().contains("authorization:") {
                counts.1.fetch_add(1, Ordering::SeqCst);
            }
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (place, asked, trusted)
}

pub(crate) fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

pub(crate) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn no_way_to_write_an_address_leads_inside() {
    let (place, asked, _) = server("127.0.0.1", ok("inside")).await;
    let fetcher = Fetcher::new(policy()).unwrap();
    for host in [OWN_ADDRESSES, OWN_FORMS, BARRED_ADDRESSES, BARRED_FORMS].concat() {
        let refused = fetcher.send(get(&format!("http://{host}:{}/", place.port())), 100).await;
        assert!(matches!(refused, Err(FetchError::Closed { .. })), "{host}: {refused:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn where_the_inside_is_allowed_the_places_of_clouds_are_not() {
    let (place, asked, _) = server("127.0.0.1", ok("inside")).await;
    let allowing = || FetchPolicy { allows_private: true, ..policy() };
    let fetcher = Fetcher::new(allowing()).unwrap();
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"] {
        let answer = fetcher.send(get(&format!("http://{host}:{}/", place.port())), 100).await;
        assert_eq!(answer.unwrap().body(), "inside", "{host}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    for host in [BARRED_ADDRESSES, BARRED_FORMS].concat() {
        let refused = fetcher.send(get(&format!("http://{host}/latest/meta-data/")), 100).await;
        assert!(matches!(refused, Err(FetchError::Closed { .. })), "{host}: {refused:?}");
    }
    let lookup: Lookup = Arc::new(|_| async { Ok(vec![SocketAddr::from(([169, 254, 169, 254], 0))]) }.boxed());
    let named = judging(allowing(), is_barred, lookup);
    let refused = named.send(get("http://hook.apiary.svc.cluster.local/"), 100).await;
    assert!(matches!(refused, Err(FetchError::Closed { .. })), "{refused:?}");
}

#[tokio::test]
async fn what_is_said_about_a_failure_does_not_count_however_large_it_is() {
    let body = "x".repeat(1000);
    let answer = format!("HTTP/1.1 422 No\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    let (place, ..) = server("127.0.0.1", answer).await;
    let fetcher = judging(policy(), |_| false, system());
    let answer = fetcher.send(get(&format!("http://{place}/")), 100).await.unwrap();
    assert_eq!((answer.status(), answer.body().len()), (StatusCode::UNPROCESSABLE_ENTITY, 0));
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    let fetcher = Fetcher::new(FetchPolicy::default()).unwrap();
    for (url, told) in [
        ("http://hive.example/", "http://hive.example/ is not https, and plain http is not allowed"),
        ("ftp://hive.example/", "ftp://hive.example/ is no address of the form https://HOST/PATH"),
        ("https://user:secret@hive.example:1/", "the address at hive.example:1 carries a user name; leave it out"),
        ("/path", "/path is no address of the form https://HOST/PATH"),
    ] {
        let refused = fetcher.send(get(url), 100).await.unwrap_err();
        assert_eq!(refused.to_string(), told, "{url}");
    }
}

#[test]
fn tls_files_that_cannot_be_used_are_read_once_and_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let authority = rcgen::generate_simple_self_signed(["hive.example".to_owned()]).unwrap().cert.pem();
    std::fs::write(&file, &authority).unwrap();
    let tls = TlsFiles { authorities: Some(file.clone()), ..TlsFiles::default() };
    let fetcher = Fetcher::new(FetchPolicy { tls, ..policy() }).unwrap();
    let wrong = || {
        let stamp = fetcher.0.policy.tls.stamp();
        fetcher.0.client.lock().renew(stamp, Instant::now(), || panic!("they are read again")).1
    };
    std::fs::write(&file, "-----BEGIN").unwrap();
    for _ in 0..3 {
        drop(fetcher.client());
        let told = wrong().unwrap();
        assert!(told.contains(file.to_str().unwrap()), "{told}");
    }
    assert_eq!(fetcher.0.lapses.failed(), None, "it was told of the first question, and is not of each");
    std::fs::write(&file, &authority).unwrap();
    drop(fetcher.client());
    assert_eq!(wrong(), None);
    assert!(!fetcher.0.lapses.is_over(), "that it is over was told");
}

/// For these tests the inside is one address of this machine, and the outside another one.
const INSIDE: &str = "127.0.0.77";

fn is_inside(address: std::net::IpAddr) -> bool {
    address.to_string() == INSIDE
}

#[tokio::test]
async fn redirects_are_checked_like_the_first_address() {
    let (inside, reached, _) = server(INSIDE, ok("inside")).await;
    let fetcher = judging(policy(), is_inside, system());
    for to in [format!("http://{inside}/"), format!("//{inside}/"), format!("http://0x7f00004d:{}/", inside.port())] {
        let (outside, ..) = server("127.0.0.1", redirect(&to)).await;
        let refused = fetcher.send(get(&format!("http://{outside}/")), 100).await;
        assert!(matches!(refused, Err(FetchError::Closed { .. })), "{to}: {refused:?}");
    }
    for to in ["ftp://127.0.0.1/", "file:///etc/passwd", "javascript:1"] {
        let (outside, ..) = server("127.0.0.1", redirect(to)).await;
        assert!(fetcher.send(get(&format!("http://{outside}/")), 100).await.is_err(), "{to}");
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_redirect_elsewhere_takes_no_credential_along() {
    let fetcher = judging(policy(), |_| false, system());
    let (other, asked, trusted) = server("127.0.0.1", ok("there")).await;
    let (first, _, trusted_first) = server("127.0.0.1", redirect(&format!("http://{other}/"))).await;
    let answer = fetcher.send(get(&format!("http://{first}/")), 100).await.unwrap();
    assert_eq!(answer.body(), "there");
    assert_eq!((asked.load(Ordering::SeqCst), trusted.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(trusted_first.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn redirects_come_to_an_end_and_posts_stay() {
    let fetcher = judging(policy(), |_| false, system());
    let (circle, asked, _) = server("127.0.0.1", redirect("/again")).await;
    let refused = fetcher.send(get(&format!("http://{circle}/")), 100).await;
    assert!(matches!(refused, Err(FetchError::Redirect(_))), "{refused:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 1 + REDIRECTS);
    let post = Request::post(format!("http://{circle}/")).body(Bytes::from_static(b"token=t")).unwrap();
    assert!(matches!(fetcher.send(post, 100).await, Err(FetchError::Redirect(_))));
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_judged_each_time() {
    let (outside, ..) = server("127.0.0.1", ok("outside")).await;
    let (_, reached, _) = server(INSIDE, ok("inside")).await;
    let turns = Arc::new(AtomicUsize::new(0));
    let lookup: Lookup = Arc::new(move |_| {
        let address = if turns.fetch_add(1, Ordering::SeqCst) == 0 { "127.0.0.1" } else { INSIDE };
        let found = vec![SocketAddr::new(address.parse().unwrap(), 0)];
        async move { Ok(found) }.boxed()
    });
    let fetcher = judging(policy(), is_inside, lookup);
    let url = format!("http://rebound.example:{}/", outside.port());
    assert_eq!(fetcher.send(get(&url), 100).await.unwrap().body(), "outside");
    assert!(matches!(fetcher.send(get(&url), 100).await, Err(FetchError::Closed { .. })));
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn answers_have_a_size_and_a_time() {
    let quick = FetchPolicy { patience: Duration::from_millis(200), ..policy() };
    let fetcher = judging(quick, |_| false, system());
    let (silent, ..) = server("127.0.0.1", String::new()).await;
    let refused = fetcher.send(get(&format!("http://{silent}/")), 100).await;
    assert!(matches!(refused, Err(FetchError::Unreachable { .. } | FetchError::TooSlow(_))), "{refused:?}");
    let hanging = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345".to_owned();
    let (hanging, ..) = server("127.0.0.1", hanging).await;
    assert!(fetcher.send(get(&format!("http://{hanging}/")), 100).await.is_err());
    let patient = judging(policy(), |_| false, system());
    let (large, ..) = server("127.0.0.1", ok(&"x".repeat(101))).await;
    let refused = patient.send(get(&format!("http://{large}/")), 100).await;
    assert!(matches!(refused, Err(FetchError::TooLarge(_))), "{refused:?}");
    let (exact, ..) = server("127.0.0.1", ok(&"x".repeat(100))).await;
    assert_eq!(patient.send(get(&format!("http://{exact}/")), 100).await.unwrap().body().len(), 100);
}
