use super::*;

#[tokio::test]
async fn an_empty_store_is_at_the_first_revision() {
    let store = memory();
    assert_eq!(store.revision(), 1);
    assert_eq!(store.oldest_revision(), 1);
    assert_eq!(store.list(&Selection::all(PODS)), Page { records: vec![], revision: 1, remaining: 0 });
}

#[tokio::test]
async fn every_change_takes_the_next_revision() {
    let store = memory();
    let (web, database) = (pod("default", "web"), pod("default", "database"));
    assert_eq!(create(&store, &web, "a").await, 2);
    assert_eq!(create(&store, &database, "b").await, 3);
    assert_eq!(update(&store, &web, "c").await, 4);
    assert_eq!(delete(&store, &database).await, 5);
    assert_eq!(store.revision(), 5);

    let record = store.get(&web).unwrap();
    assert_eq!((record.revision, record.created, record.object.bytes().as_ref()), (4, 2, &b"c"[..]));
    assert_eq!(record.labels.get("text"), Some("c"));
    assert_eq!(store.get(&database), None);
}

#[tokio::test]
async fn a_deletion_answers_with_the_last_state() {
    let store = memory();
    let web = pod("default", "web");
    let expected = create(&store, &web, "last").await;
    let deleted = store.commit(Change::Delete { key: web, expected }).await.unwrap();
    assert_eq!(
        (deleted.revision, deleted.record.revision, deleted.record.object.bytes().as_ref()),
        (3, 2, &b"last"[..])
    );
}

#[tokio::test]
async fn changes_whose_condition_does_not_hold_are_refused_and_take_no_revision() {
    let store = memory();
    let (web, missing) = (pod("default", "web"), pod("default", "missing"));
    create(&store, &web, "a").await;
    let refused = [
        (Change::Create { key: web.clone(), content: content("b") }, CommitError::AlreadyExists),
        (Change::Update { key: web.clone(), expected: 1, content: content("b") }, CommitError::Conflict { current: 2 }),
        (Change::Update { key: missing.clone(), expected: 2, content: content("b") }, CommitError::NotFound),
        (Change::Delete { key: web.clone(), expected: 3 }, CommitError::Conflict { current: 2 }),
        (Change::Delete { key: missing, expected: 2 }, CommitError::NotFound),
    ];
    for (change, error) in refused {
        assert_eq!(store.commit(change).await.unwrap_err(), error);
    }
    assert_eq!(store.revision(), 2);
    assert!(store.get(&web).unwrap().object == "a".into());
}

#[tokio::test]
async fn an_object_that_takes_too_much_is_refused_however_it_comes() {
    let store = memory();
    let (web, other) = (pod("default", "web"), pod("default", "other"));
    create(&store, &web, "a").await;
    let text = |bytes: usize| Content { object: "x".repeat(bytes).as_str().into(), labels: Labels::default() };
    let (most, error) = (text(OBJECT_BYTES), CommitError::TooLarge { bytes: OBJECT_BYTES + 1 });
    let create = |content| Change::Create { key: other.clone(), content };
    let update = |content| Change::Update { key: web.clone(), expected: 2, content };
    assert_eq!(store.commit(create(text(OBJECT_BYTES + 1))).await.unwrap_err(), error);
    assert_eq!(store.commit(update(text(OBJECT_BYTES + 1))).await.unwrap_err(), error);
    assert_eq!(store.revision(), 2);
    assert_eq!(store.commit(update(most.clone())).await.unwrap().revision, 3);
    assert_eq!(store.commit(create(most)).await.unwrap().revision, 4);
}

#[tokio::test]
async fn an_object_that_is_created_again_is_another_one() {
    let store = memory();
    let web = pod("default", "web");
    create(&store, &web, "a").await;
    delete(&store, &web).await;
    create(&store, &web, "b").await;
    let record = store.get(&web).unwrap();
    assert_eq!((record.created, record.revision), (4, 4));
}

/// Many writers race for the same object and end up in few transactions: the conditions hold among them too.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_writers_exactly_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(&folder.path().join("data")).unwrap();
    let web = pod("default", "web");
    for round in 0..10 {
        let attempts = (0..50).map(|number| {
            let (store, web) = (store.clone(), web.clone());
            tokio::spawn(async move {
                let content = content(&number.to_string());
                match store.get(&web) {
                    None => store.commit(Change::Create { key: web, content }).await,
                    Some(current) => {
                        store.commit(Change::Update { key: web, expected: current.revision, content }).await
                    }
                }
            })
        });
        let mut won = 0;
        let before = store.revision();
        for attempt in attempts.collect::<Vec<_>>() {
            match attempt.await.unwrap() {
                Ok(_) => won += 1,
                Err(CommitError::AlreadyExists | CommitError::Conflict { .. }) => {}
                Err(other) => panic!("round {round}: {other}"),
            }
        }
        // A writer that looks after another has won starts from there, so several may win, one after the other.
        assert!(won >= 1);
        assert_eq!(store.revision(), before + won);
    }
}

#[tokio::test]
async fn the_text_of_keys_is_shared() {
    let store = memory();
    for name in ["a", "b"] {
        create(&store, &pod("default", name), "x").await;
    }
    let (first, second) = (store.get(&pod("default", "a")).unwrap(), store.get(&pod("default", "b")).unwrap());
    assert!(Arc::ptr_eq(&first.key.resource, &second.key.resource));
    assert!(Arc::ptr_eq(&first.key.namespace, &second.key.namespace));
}

#[tokio::test]
async fn a_closed_store_refuses_changes_and_still_answers() {
    let store = memory();
    let web = pod("default", "web");
    create(&store, &web, "a").await;
    store.close().await;
    store.close().await;
    assert_eq!(store.commit(Change::Delete { key: web.clone(), expected: 2 }).await.unwrap_err(), CommitError::Closed);
    assert!(store.get(&web).is_some());
}
