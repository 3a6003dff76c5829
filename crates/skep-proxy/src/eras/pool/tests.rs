//! Who uses which session, and for how long.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::*;
use crate::limits::Limits;
use crate::stdio::mirrors::Mirrors;
use crate::transparent::upstream::Upstream;
use crate::transparent::{Dialect, Target};

/// Opens sessions without a server, and counts them.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Opener for Counting {
    fn open<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<ServerSession, NoSession>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            // Others come meanwhile.
            tokio::task::yield_now().await;
            Ok(ServerSession::of_http(line(None), "{}"))
        })
    }
}

/// The line of somebody who proves to be this.
fn line(token: Option<&'static str>) -> HttpLine {
    let target = Target::local(Dialect::Streamable, "http://127.0.0.1:9").unwrap();
    let upstream = Upstream::new(&target, &Limits::default()).unwrap();
    let holder = token.map_or(Holder::Anybody, |token| Holder::Bearer(token.as_bytes().into()));
    let headers: HeaderMap = token.iter().map(|token| (AUTHORIZATION, http::HeaderValue::from_static(token))).collect();
    let mirrors: Arc<Mirrors> = Arc::default();
    let uri = http::Uri::from_static("http://127.0.0.1:9/mcp");
    HttpLine::modern(upstream, uri, headers, Limits::default().answers(), mirrors, Arc::default()).of(holder, None)
}

/// Somebody who has proved nothing, at an address.
fn at(last: u8) -> Whose {
    Whose::At(Some([10, 0, 0, last].into()))
}

struct Setup {
    pool: Arc<Pool>,
    opener: Arc<Counting>,
}

impl Setup {
    fn new(mode: BackendSessions, change: impl FnOnce(&mut Pool)) -> Self {
        let mut pool = Pool::new(&EraSettings { sessions: mode, ..EraSettings::default() });
        change(&mut pool);
        Self { pool: Arc::new(pool), opener: Arc::default() }
    }

    async fn lease(&self, token: Option<&'static str>) -> Lease {
        self.try_lease(token, at(1), Sharing::Shared).await.unwrap()
    }

    async fn try_lease(&self, token: Option<&'static str>, whose: Whose, sharing: Sharing) -> Result<Lease, NoSession> {
        let (pool, opener) = (Arc::clone(&self.pool), Arc::clone(&self.opener));
        let seats = Seats { pool, eras: Arc::default(), line: line(token), whose, opener };
        self.pool.lease(&seats, "{}", sharing).await
    }

    fn opened(&self) -> usize {
        self.opener.0.load(Ordering::Relaxed)
    }

    fn open(&self) -> usize {
        self.pool.sessions.lock().len()
    }
}

#[tokio::test]
async fn who_uses_a_session_is_what_somebody_has_chosen() {
    // So many sessions are opened for two requests of one client, and for two of clients that nobody knows; one after the
    // other, and at once.
    for (mode, known, unknown) in
        [(BackendSessions::PerPrincipal, 1, 2), (BackendSessions::PerRequest, 2, 2), (BackendSessions::Shared, 1, 1)]
    {
        for (token, expected) in [(Some("Bearer a"), known), (None, unknown)] {
            let setup = Setup::new(mode, |_| {});
            drop(setup.lease(token).await);
            drop(setup.lease(token).await);
            assert_eq!(setup.opened(), expected, "{mode:?} {token:?}");
            assert_eq!(setup.open(), usize::from(expected == 1), "{mode:?} {token:?}: what is not kept has ended");
            let setup = Setup::new(mode, |_| {});
            let leases = (setup.lease(token).await, setup.lease(token).await);
            assert_eq!(setup.opened(), expected, "{mode:?} {token:?}");
            drop(leases);
        }
    }
    let setup = Setup::new(BackendSessions::Shared, |_| {});
    drop((setup.lease(Some("Bearer a")).await, setup.lease(Some("Bearer b")).await, setup.lease(None).await));
    assert_eq!(setup.opened(), 3, "whoever is known shares with nobody");
}

#[tokio::test]
async fn a_session_ends_when_nobody_has_used_it_for_as_long_as_somebody_says() {
    let setup = Setup::new(BackendSessions::PerPrincipal, |pool| pool.idle = Duration::ZERO);
    let lease = setup.lease(Some("Bearer a")).await;
    setup.pool.sweep();
    assert_eq!(setup.open(), 1, "it is used");
    drop(lease);
    tokio::time::sleep(Duration::from_millis(2)).await;
    setup.pool.sweep();
    assert_eq!(setup.open(), 0);
    let settings = EraSettings { session_idle: Duration::from_secs(7), ..EraSettings::default() };
    assert_eq!(Pool::new(&settings).idle, Duration::from_secs(7));
}

#[tokio::test]
async fn a_session_that_is_old_ends_but_never_while_it_is_used() {
    let setup = Setup::new(BackendSessions::PerPrincipal, |pool| pool.oldest = Duration::from_millis(20));
    let (first, second) = (setup.lease(Some("Bearer a")).await, setup.lease(Some("Bearer a")).await);
    assert_eq!(setup.opened(), 1);
    tokio::time::sleep(Duration::from_millis(25)).await;
    setup.pool.sweep();
    assert_eq!(setup.open(), 1, "both of its users go on");
    let third = setup.lease(Some("Bearer a")).await;
    assert_eq!(setup.opened(), 2, "nobody else begins to use it");
    drop(first);
    assert_eq!(setup.open(), 2);
    drop(second);
    assert_eq!(setup.open(), 1, "it ends with the last one");
    drop(third);
}

#[tokio::test]
async fn those_who_come_at_once_get_no_more_sessions_than_those_who_come_one_after_the_other() {
    for (token, most) in [(None, PER_ADDRESS), (Some("Bearer a"), PER_CLIENT)] {
        let setup = Setup::new(BackendSessions::PerPrincipal, |_| {});
        let all = (0..most + 20).map(|_| setup.try_lease(token, at(1), Sharing::Alone));
        let (leases, full): (Vec<_>, Vec<_>) =
            futures::future::join_all(all).await.into_iter().partition(Result::is_ok);
        assert_eq!((leases.len(), setup.opened(), setup.open()), (most, most, most), "{token:?}");
        assert!(full.iter().all(|none| matches!(none, Err(NoSession::Full))));
        drop(leases);
        assert!(setup.try_lease(token, at(1), Sharing::Alone).await.is_ok(), "there is room again");
    }
}

#[tokio::test]
async fn whoever_proves_nothing_does_not_take_the_places_of_those_elsewhere() {
    let setup = Setup::new(BackendSessions::PerPrincipal, |_| {});
    let lease = async |whose: Whose| setup.try_lease(None, whose, Sharing::Alone).await;
    let mut leases = Vec::new();
    for last in 1..=2 {
        for _ in 0..PER_ADDRESS {
            leases.push(lease(at(last)).await.unwrap());
        }
        assert!(matches!(lease(at(last)).await, Err(NoSession::Full)));
    }
    assert_eq!(setup.open(), ALL);
    assert!(matches!(lease(at(3)).await, Err(NoSession::Full)), "there are no more");
    leases.truncate(PER_ADDRESS);
    leases.push(lease(at(3)).await.unwrap());
    assert!(lease(at(1)).await.is_err());
    let known = setup.try_lease(Some("Bearer a"), Whose::Known("ann".into()), Sharing::Alone).await;
    assert!(known.is_ok());
    drop((leases, known));
    assert_eq!(setup.open(), 1, "only whoever is known keeps one");
}

#[tokio::test]
async fn credentials_that_somebody_makes_up_end_the_sessions_of_others_at_the_same_address_only() {
    let setup = Setup::new(BackendSessions::PerPrincipal, |_| {});
    let tokens: Vec<&'static str> = (0..=PER_ADDRESS).map(|number| &*format!("Bearer {number}").leak()).collect();
    let other = setup.try_lease(Some("Bearer other"), at(2), Sharing::Shared).await.unwrap();
    drop(other);
    for token in &tokens {
        drop(setup.try_lease(Some(token), at(1), Sharing::Shared).await.unwrap());
    }
    assert_eq!(setup.open(), PER_ADDRESS + 1);
    let opened = setup.opened();
    drop(setup.try_lease(Some("Bearer other"), at(2), Sharing::Shared).await.unwrap());
    drop(setup.try_lease(Some(tokens[1]), at(1), Sharing::Shared).await.unwrap());
    assert_eq!(setup.opened(), opened, "they are still there");
    drop(setup.try_lease(Some(tokens[0]), at(1), Sharing::Shared).await.unwrap());
    assert_eq!(setup.opened(), opened + 1, "this one was not used for the longest time");
}

#[tokio::test]
async fn whoever_listens_leaves_sessions_for_those_who_call() {
    let setup = Setup::new(BackendSessions::PerPrincipal, |_| {});
    let mut leases = Vec::new();
    for last in (1..).take(LISTENING / LISTENING_EACH) {
        for _ in 0..LISTENING_EACH {
            leases.push(setup.try_lease(None, at(last), Sharing::OnlyOnce).await.unwrap());
        }
        let more = setup.try_lease(None, at(last), Sharing::OnlyOnce).await;
        assert!(matches!(more, Err(NoSession::TooMany(LISTENING_EACH))));
        leases.push(setup.try_lease(None, at(last), Sharing::Alone).await.unwrap());
    }
    assert!(matches!(setup.try_lease(None, at(99), Sharing::OnlyOnce).await, Err(NoSession::Full)));
    leases.remove(0);
    assert!(setup.try_lease(None, at(99), Sharing::OnlyOnce).await.is_ok());
}
