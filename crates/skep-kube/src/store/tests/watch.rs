use super::*;
use std::time::Duration;
use tokio::time::timeout;

/// The event that is already there.
async fn next(watch: &mut Watch) -> String {
    brief(&timeout(Duration::from_secs(10), watch.next()).await.unwrap().unwrap())
}

async fn nothing_waits(watch: &mut Watch) {
    assert!(timeout(Duration::from_millis(20), watch.next()).await.is_err());
}

#[tokio::test]
async fn a_watch_sees_the_changes_after_its_revision_with_the_states_before() {
    let store = memory();
    let web = pod("default", "web");
    create(&store, &web, "a").await;
    let mut old = store.watch(PODS, None, Some(1)).unwrap();
    let mut new = store.watch(PODS, None, None).unwrap();
    update(&store, &web, "b").await;
    delete(&store, &web).await;
    assert_eq!(next(&mut old).await, "2 +a");
    for watch in [&mut old, &mut new] {
        assert_eq!(next(watch).await, "3 a>b");
        assert_eq!(next(watch).await, "4 -b");
        nothing_waits(watch).await;
    }
    create(&store, &web, "c").await;
    assert_eq!(next(&mut new).await, "5 +c");
}

#[tokio::test]
async fn a_watch_sees_only_its_resource_and_namespace() {
    let store = memory();
    let mut everywhere = store.watch(PODS, None, None).unwrap();
    let mut inside = store.watch(PODS, Some("a"), None).unwrap();
    create(&store, &Key::new("apps/deployments", "a", "x"), "deployment").await;
    create(&store, &pod("b", "x"), "b").await;
    create(&store, &pod("a", "x"), "a").await;
    assert_eq!(next(&mut everywhere).await, "3 +b");
    assert_eq!(next(&mut everywhere).await, "4 +a");
    assert_eq!(next(&mut inside).await, "4 +a");
    nothing_waits(&mut inside).await;
}

#[tokio::test]
async fn a_watch_that_waits_is_woken() {
    let store = memory();
    let mut watch = store.watch(PODS, None, None).unwrap();
    let waiting = tokio::spawn(async move { next(&mut watch).await });
    tokio::task::yield_now().await;
    create(&store, &Key::new("/secrets", "a", "x"), "for another").await;
    create(&store, &pod("a", "x"), "a").await;
    assert_eq!(waiting.await.unwrap(), "3 +a");
}

#[tokio::test]
async fn progress_never_passes_an_event_that_waits() {
    let store = memory();
    let mut watch = store.watch(PODS, None, None).unwrap();
    assert_eq!(watch.progress(), Ok(1));
    create(&store, &Key::new("/secrets", "a", "x"), "for another").await;
    assert_eq!(watch.progress(), Ok(2));
    create(&store, &Key::new("/secrets", "a", "y"), "for another").await;
    create(&store, &pod("a", "x"), "a").await;
    create(&store, &Key::new("/secrets", "a", "z"), "for another").await;
    assert_eq!(watch.progress(), Ok(3));
    assert_eq!(next(&mut watch).await, "4 +a");
    assert_eq!(watch.progress(), Ok(5));
    nothing_waits(&mut watch).await;
}

#[tokio::test]
async fn a_watch_cannot_start_in_the_forgotten_past() {
    let store = memory();
    for name in ["a", "b", "c"] {
        create(&store, &pod("a", name), name).await;
    }
    store.compact(3).unwrap();
    let start = |from| store.watch(PODS, None, Some(from)).map(drop);
    assert_eq!(start(2), Err(RevisionError::Expired { requested: 2, oldest: 3 }));
    assert_eq!(start(3), Ok(()));
    assert_eq!(start(4), Ok(()));
}

#[tokio::test]
async fn a_watch_can_wait_for_the_future() {
    let store = memory();
    let mut watch = store.watch(PODS, None, Some(3)).unwrap();
    for name in ["a", "b"] {
        create(&store, &pod("a", name), name).await;
        nothing_waits(&mut watch).await;
    }
    create(&store, &pod("a", "c"), "c").await;
    assert_eq!(next(&mut watch).await, "4 +c");
}

#[tokio::test]
async fn a_watch_that_falls_behind_ends() {
    let store = forgetful(2);
    let mut slow = store.watch(PODS, None, None).unwrap();
    let mut other = store.watch("/secrets", None, None).unwrap();
    let mut quick = store.watch(PODS, None, None).unwrap();
    for name in ["a", "b", "c"] {
        create(&store, &pod("a", name), name).await;
        quick.next().await.unwrap();
    }
    let end = WatchEnd::Lagged { position: 1, oldest: 2 };
    assert_eq!(slow.next().await, Err(end));
    assert_eq!(slow.progress(), Err(end));
    // Even one that would have had nothing to say: it cannot know.
    assert_eq!(other.next().await, Err(end));
    assert_eq!(quick.progress(), Ok(4));
}

#[tokio::test]
async fn a_watch_with_state_continues_from_exactly_that_state() {
    let store = memory();
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for number in 0..200 {
                create(&store, &pod("a", &format!("{number:03}")), "x").await;
            }
        }
    });
    for _ in 0..20 {
        let (page, mut watch) = store.watch_with_state(PODS, Some("a"));
        assert_eq!(page.records.len() as u64, page.revision - 1);
        if page.revision < 201 {
            assert_eq!(watch.next().await.unwrap().revision, page.revision + 1);
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn watches_end_when_the_store_closes_after_the_last_event() {
    let store = memory();
    let mut watch = store.watch(PODS, None, None).unwrap();
    create(&store, &pod("a", "x"), "a").await;
    store.close().await;
    assert_eq!(next(&mut watch).await, "2 +a");
    assert_eq!(watch.next().await, Err(WatchEnd::Closed));

    let store = memory();
    let mut watch = store.watch(PODS, None, None).unwrap();
    drop(store);
    assert_eq!(watch.next().await, Err(WatchEnd::Closed));
}

const WATCHERS: usize = 200;
const WRITERS: usize = 8;
const CHANGES_OF_EACH: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_watchers_see_every_event_in_order_exactly_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(&folder.path().join("data")).unwrap();
    let total = WRITERS * CHANGES_OF_EACH;
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            let mut watch = store.watch(PODS, None, None).unwrap();
            tokio::spawn(async move {
                let mut seen = Vec::with_capacity(total);
                while seen.len() < total {
                    let event = watch.next().await.unwrap();
                    seen.push((event.revision, event.key().clone()));
                }
                assert_eq!(watch.progress().unwrap(), seen.last().unwrap().0);
                seen
            })
        })
        .collect();
    let writers = (0..WRITERS).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut written = Vec::new();
            for number in 0..CHANGES_OF_EACH {
                let key = pod("a", &format!("{writer}-{}", number / 3));
                let revision = match number % 3 {
                    0 => create(&store, &key, "a").await,
                    1 => update(&store, &key, "b").await,
                    _ => delete(&store, &key).await,
                };
                written.push((revision, key));
            }
            written
        })
    });
    let mut written = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        written.extend(writer.await.unwrap());
    }
    written.sort();
    assert!(written.iter().map(|(revision, _)| *revision).eq(2..2 + total as u64));
    for watcher in watchers {
        assert!(watcher.await.unwrap() == written);
    }
}
