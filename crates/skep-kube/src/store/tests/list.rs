use super::*;

async fn filled() -> Store {
    let store = memory();
    for (namespace, name) in [("b", "2"), ("a", "1"), ("a-x", "1"), ("b", "1"), ("a", "2")] {
        create(&store, &pod(namespace, name), &format!("{namespace}/{name}")).await;
    }
    create(&store, &Key::new("apps/deployments", "a", "1"), "another resource").await;
    store
}

#[tokio::test]
async fn a_list_is_in_the_order_of_the_real_server() {
    let store = filled().await;
    let page = store.list(&Selection::all(PODS));
    assert_eq!(texts(&page), ["a-x/1", "a/1", "a/2", "b/1", "b/2"]);
    assert_eq!((page.revision, page.remaining), (7, 0));
    assert_eq!(texts(&store.list(&Selection { namespace: Some("a"), ..Selection::all(PODS) })), ["a/1", "a/2"]);
    assert_eq!(texts(&store.list(&Selection { namespace: Some("c"), ..Selection::all(PODS) })), [""; 0]);
    assert_eq!(texts(&store.list(&Selection::all("/nothing"))), [""; 0]);
}

#[tokio::test]
async fn pages_follow_each_other() {
    let store = filled().await;
    let page = |after, namespace| {
        let page = store.list(&Selection { resource: PODS, namespace, after, limit: Some(2) });
        (texts(&page).join(" "), page.remaining)
    };
    assert_eq!(page(None, None), ("a-x/1 a/1".to_owned(), 3));
    assert_eq!(page(Some(("a", "1")), None), ("a/2 b/1".to_owned(), 1));
    assert_eq!(page(Some(("b", "1")), None), ("b/2".to_owned(), 0));
    assert_eq!(page(Some(("a", "1")), Some("a")), ("a/2".to_owned(), 0));
    // The record that ended a page may be gone, and a token may name anything.
    assert_eq!(page(Some(("a", "11")), None), ("a/2 b/1".to_owned(), 1));
    assert_eq!(page(Some(("z", "")), None), (String::new(), 0));
    assert_eq!(page(Some(("z", "")), Some("a")), (String::new(), 0));
    assert_eq!(page(Some(("", "")), Some("a")), ("a/1 a/2".to_owned(), 0));
}

#[tokio::test]
async fn a_list_of_an_older_revision_does_not_see_what_came_later() {
    let store = filled().await;
    delete(&store, &pod("a", "1")).await;
    update(&store, &pod("b", "1"), "changed").await;
    create(&store, &pod("a", "0"), "new").await;
    create(&store, &pod("a", "1"), "again").await;
    update(&store, &pod("a", "1"), "and again").await;
    assert_eq!(texts(&store.list(&Selection::all(PODS))), ["a-x/1", "new", "and again", "a/2", "changed", "b/2"]);

    let then = store.list_at(7, &Selection::all(PODS)).unwrap();
    assert_eq!(texts(&then), ["a-x/1", "a/1", "a/2", "b/1", "b/2"]);
    assert_eq!((then.revision, then.remaining), (7, 0));
    let page = |after| {
        let page = store.list_at(7, &Selection { after, limit: Some(2), ..Selection::all(PODS) }).unwrap();
        (texts(&page).join(" "), page.remaining)
    };
    assert_eq!(page(Some(("a-x", "1"))), ("a/1 a/2".to_owned(), 2));
    assert_eq!(page(Some(("a", "1"))), ("a/2 b/1".to_owned(), 1));
    assert_eq!(texts(&store.list_at(1, &Selection::all(PODS)).unwrap()), [""; 0]);
    let namespace = Selection { namespace: Some("a"), ..Selection::all(PODS) };
    assert_eq!(texts(&store.list_at(8, &namespace).unwrap()), ["a/2"]);
}

#[tokio::test]
async fn compacted_and_future_revisions_are_refused() {
    let store = filled().await;
    store.compact(4).unwrap();
    assert_eq!(store.oldest_revision(), 4);
    assert_eq!(texts(&store.list_at(4, &Selection::all(PODS)).unwrap()), ["a-x/1", "a/1", "b/2"]);
    let all = Selection::all(PODS);
    assert_eq!(store.list_at(3, &all), Err(RevisionError::Expired { requested: 3, oldest: 4 }));
    assert_eq!(store.list_at(8, &all), Err(RevisionError::Future { requested: 8, current: 7 }));
    assert_eq!(store.compact(3), Err(RevisionError::Expired { requested: 3, oldest: 4 }));
    assert_eq!(store.compact(8), Err(RevisionError::Future { requested: 8, current: 7 }));
    store.compact(7).unwrap();
    assert_eq!(store.list_at(7, &all).unwrap(), store.list(&all));
}

#[tokio::test]
async fn the_history_forgets_by_count_and_by_bytes() {
    let store = forgetful(3);
    for number in 0..5 {
        create(&store, &pod("a", &number.to_string()), "a").await;
    }
    assert_eq!((store.revision(), store.oldest_revision()), (6, 3));

    let history = HistoryLimits { bytes: 2_800, ..HistoryLimits::default() };
    let store = Store::open_with(None, Options { history, ..Options::default() }).unwrap();
    let web = pod("a", "web");
    create(&store, &web, &"x".repeat(1000)).await;
    for _ in 0..3 {
        update(&store, &web, &"y".repeat(1000)).await;
    }
    // Each update keeps the state before it, object and label: one of more than two thousand bytes fits.
    assert_eq!((store.revision(), store.oldest_revision()), (5, 4));
}
