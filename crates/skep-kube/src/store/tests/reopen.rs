use super::*;

#[tokio::test]
async fn objects_and_the_revision_survive_a_reopening_and_the_history_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made/for/us");
    let store = Store::open(Some(&path)).unwrap();
    assert_eq!(store.revision(), 1);
    let (web, database) = (pod("default", "web"), pod("default", "database"));
    create(&store, &web, "a").await;
    create(&store, &database, "b").await;
    update(&store, &web, "c").await;
    delete(&store, &database).await;
    let record = store.get(&web);
    store.close().await;

    let store = Store::open(Some(&path)).unwrap();
    assert_eq!((store.revision(), store.oldest_revision()), (5, 5));
    assert_eq!(store.get(&web), record);
    assert_eq!(store.get(&database), None);
    let expired = RevisionError::Expired { requested: 4, oldest: 5 };
    assert_eq!(store.watch(PODS, None, Some(4)).map(drop), Err(expired));
    let mut watch = store.watch(PODS, None, Some(5)).unwrap();
    assert_eq!(update(&store, &web, "d").await, 6);
    assert_eq!(brief(&watch.next().await.unwrap()), "6 c>d");
}

#[tokio::test]
async fn the_folder_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let store = on_disk(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(&path).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    store.close().await;
}

#[tokio::test]
async fn a_folder_that_is_in_use_is_refused_until_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(folder.path()).unwrap();
    let error = on_disk(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert!(error.to_string().contains(folder.path().to_str().unwrap()));
    assert_eq!(error.hint(), "stop the other process, or use another folder");
    create(&store, &pod("a", "x"), "a").await;
    store.close().await;
    assert_eq!(on_disk(folder.path()).unwrap().revision(), 2);
}

/// The steps of making a folder leave these behind when they are interrupted.
#[tokio::test]
async fn a_folder_whose_making_was_interrupted_is_made_again() {
    for leftovers in [&["store.redb.new"][..], &["store.redb.new", "format.new"], &["store.redb.new", "format"], &[]] {
        let folder = tempfile::tempdir().unwrap();
        for name in leftovers {
            let text: &[u8] = if *name == "format" { b"skep-kube store 1\n" } else { b"half a fi" };
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let store = on_disk(folder.path()).unwrap();
        assert_eq!(create(&store, &pod("a", "x"), "a").await, 2);
        store.close().await;
        assert_eq!(on_disk(folder.path()).unwrap().revision(), 2, "{leftovers:?}");
    }
}

#[tokio::test]
async fn a_thousand_objects_take_little_time_and_space() {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(folder.path()).unwrap();
    let text = "x".repeat(3000);
    let writes = (0..1000).map(|number| {
        let (store, text) = (store.clone(), text.clone());
        tokio::spawn(async move { create(&store, &pod("a", &number.to_string()), &text).await })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    store.close().await;
    let size = std::fs::metadata(folder.path().join("store.redb")).unwrap().len();
    let start = std::time::Instant::now();
    let store = on_disk(folder.path()).unwrap();
    println!("1000 objects: {size} bytes on disk, reopened in {:?}", start.elapsed());
    assert_eq!(store.list(&Selection::all(PODS)).records.len(), 1000);
    assert!(size < 20 * 3_000_000, "{size}");
}
