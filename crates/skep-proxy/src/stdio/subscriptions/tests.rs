//! Watchers of resources, without a server.

use super::*;

/// Somebody who is there watches, and the server answers this.
async fn add(subscriptions: &Subscriptions, session: &str, uri: &str, end: End) -> Changed {
    subscriptions.add(&session.into(), uri, || true, async || end, || ()).await.unwrap()
}

#[tokio::test]
async fn the_server_hears_of_the_first_and_the_last_only() {
    let subscriptions = Subscriptions::default();
    assert_eq!(add(&subscriptions, "a", "x", End::Answered).await, Changed::Asked);
    let ask = async || panic!("asked again");
    assert_eq!(subscriptions.add(&"b".into(), "x", || true, ask, || ()).await, Ok(Changed::Alone));
    assert_eq!(subscriptions.watchers("x").len(), 2);
    assert_eq!(subscriptions.remove("a", "x", async || panic!("told too early")).await, Changed::Alone);
    assert_eq!(subscriptions.remove("b", "x", async || ()).await, Changed::Asked);
    assert!(subscriptions.watchers("x").is_empty() && subscriptions.topics.lock().is_empty());
}

#[tokio::test]
async fn a_refused_subscription_leaves_nothing() {
    let subscriptions = Subscriptions::default();
    add(&subscriptions, "a", "x", End::Refused(-1)).await;
    assert!(subscriptions.topics.lock().is_empty());
    let mut asked = false;
    let ask = async || {
        asked = true;
        End::Answered
    };
    subscriptions.add(&"a".into(), "x", || true, ask, || panic!("nothing is taken back")).await.unwrap();
    assert!(asked, "the next one asks again");
    assert_eq!(subscriptions.uris(), [Box::<str>::from("x")]);
    let told = Mutex::new(Vec::new());
    for _ in 0..2 {
        subscriptions.forget("a", |uri| told.lock().push(uri.to_owned()));
    }
    assert_eq!(*told.lock(), ["x"]);
    assert!(subscriptions.uris().is_empty() && subscriptions.topics.lock().is_empty());
}

#[test]
fn changes_that_end_together_leave_nothing() {
    let (subscriptions, together) = (Subscriptions::default(), std::sync::Barrier::new(8));
    for _ in 0..200 {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let topic = subscriptions.topic("x");
                    together.wait();
                    drop(topic);
                });
            }
        });
        assert!(subscriptions.topics.lock().is_empty());
    }
}

#[tokio::test]
async fn trap_8_changes_of_one_resource_are_told_in_order_and_others_do_not_wait() {
    let subscriptions = Arc::new(Subscriptions::default());
    let (release, wait) = tokio::sync::oneshot::channel::<()>();
    let (hanging, order) = (Arc::clone(&subscriptions), Arc::new(Mutex::new(Vec::new())));
    let told = Arc::clone(&order);
    let hung = tokio::spawn(async move {
        let ask = async || {
            wait.await.unwrap();
            told.lock().push("subscribed");
            End::Answered
        };
        hanging.add(&"a".into(), "x", || true, ask, || ()).await.unwrap();
    });
    while subscriptions.topics.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    add(&subscriptions, "b", "y", End::Answered).await;
    let (second, told) = (Arc::clone(&subscriptions), Arc::clone(&order));
    let removed = tokio::spawn(async move { second.remove("a", "x", async || told.lock().push("unsubscribed")).await });
    release.send(()).unwrap();
    hung.await.unwrap();
    removed.await.unwrap();
    assert_eq!(*order.lock(), ["subscribed", "unsubscribed"]);
}

#[tokio::test]
async fn trap_11_what_ends_while_the_server_is_asked_leaves_no_subscription() {
    let subscriptions = Subscriptions::default();
    let told = Mutex::new(0);
    let tell = || *told.lock() += 1;
    // The session ends before the server has agreed.
    let forgotten = async || {
        subscriptions.forget("a", |_| panic!("it does not watch yet"));
        End::Answered
    };
    subscriptions.add(&"a".into(), "x", || false, forgotten, tell).await.unwrap();
    assert_eq!(std::mem::take(&mut *told.lock()), 1);
    // Nobody knows what became of it.
    subscriptions.add(&"a".into(), "x", || true, async || End::Closed, tell).await.unwrap();
    assert_eq!(std::mem::take(&mut *told.lock()), 1);
    // The client goes away while it waits.
    let gone = "a".into();
    let hanging = subscriptions.add(&gone, "x", || true, async || std::future::pending().await, tell);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(1), hanging).await.is_err());
    assert_eq!(std::mem::take(&mut *told.lock()), 1);
    assert!(subscriptions.topics.lock().is_empty(), "and nothing is kept of it");
    assert_eq!(subscriptions.places.sessions(), 0);
}

#[tokio::test]
async fn trap_8_a_session_that_ends_while_another_begins_to_watch_is_told_in_order() {
    let subscriptions = Subscriptions::default();
    add(&subscriptions, "a", "x", End::Answered).await;
    let told = Mutex::new(0);
    // The turn of the one who unsubscribes has not ended yet, so that nothing else may be told.
    let tell = async || subscriptions.forget("a", |_| *told.lock() += 1);
    subscriptions.remove("b", "x", async || panic!("somebody watches")).await;
    subscriptions.remove("a", "x", tell).await;
    assert_eq!(*told.lock(), 0, "it was told once, by the one whose turn it was");
    assert!(subscriptions.topics.lock().is_empty());
}

#[tokio::test]
async fn what_one_session_watches_is_bounded_and_what_it_watches_no_more_makes_room() {
    let subscriptions = Subscriptions::default();
    let watch = async |session: &str, uri: &str, end| {
        subscriptions.add(&session.into(), uri, || true, async || end, || ()).await
    };
    for number in 0..limits::WATCHED_PER_SESSION {
        // What is refused takes no room.
        watch("a", "refused", End::Refused(-1)).await.unwrap();
        watch("a", &number.to_string(), End::Answered).await.unwrap();
    }
    assert_eq!(watch("a", "x", End::Answered).await, Err(Unwatched::TooMany));
    assert_eq!(subscriptions.topics.lock().len(), limits::WATCHED_PER_SESSION, "nothing is kept of that");
    assert_eq!(watch("a", "7", End::Answered).await, Ok(Changed::Alone), "it watches that one");
    assert_eq!(watch("b", "x", End::Answered).await, Ok(Changed::Asked));
    subscriptions.remove("a", "7", async || ()).await;
    watch("a", "x", End::Answered).await.unwrap();
    assert_eq!(watch("a", "y", End::Answered).await, Err(Unwatched::TooMany));
    for session in ["a", "b"] {
        subscriptions.forget(session, |_| ());
    }
    assert_eq!((subscriptions.places.sessions(), subscriptions.topics.lock().len()), (0, 0));
    let long = "x".repeat(limits::WATCHED_URI_BYTES + 1);
    assert_eq!(watch("a", &long, End::Answered).await, Err(Unwatched::TooLong));
}
