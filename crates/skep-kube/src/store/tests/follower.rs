use super::*;

fn news(follower: &mut Follower, store: &Store) -> Vec<String> {
    match follower.catch_up(store, |key| *key.resource == *PODS) {
        News::Changes(events) => events.iter().map(brief).collect(),
        News::Everything => vec!["everything".to_owned()],
    }
}

#[tokio::test]
async fn a_follower_is_told_everything_once_and_then_each_change() {
    let store = memory();
    let web = pod("default", "web");
    create(&store, &web, "a").await;
    let mut follower = Follower::default();
    assert!(!follower.is_current(&store));
    assert_eq!(news(&mut follower, &store), ["everything"]);
    assert!(follower.is_current(&store));
    update(&store, &web, "b").await;
    create(&store, &Key::new("apps/deployments", "default", "x"), "x").await;
    delete(&store, &web).await;
    assert!(!follower.is_current(&store));
    assert_eq!(news(&mut follower, &store), ["3 a>b", "5 -b"]);
    assert!(news(&mut follower, &store).is_empty());
}

#[tokio::test]
async fn a_follower_that_looks_too_seldom_reads_everything_anew() {
    let store = forgetful(2);
    let mut follower = Follower::default();
    news(&mut follower, &store);
    for name in ["a", "b", "c"] {
        create(&store, &pod("default", name), name).await;
    }
    assert_eq!(news(&mut follower, &store), ["everything"]);
    create(&store, &pod("default", "d"), "d").await;
    assert_eq!(news(&mut follower, &store), ["5 +d"]);
}
