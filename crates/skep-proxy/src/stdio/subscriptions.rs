//! Who watches which resource. The server has one subscription for all clients that watch the same.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

/// All resources that are watched.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<HashMap<Box<str>, Arc<Topic>>>);

/// One resource.
#[derive(Debug, Default)]
struct Topic {
    /// Held while the server is told, so that it hears of changes in the order in which they were decided. Other
    /// resources do not wait.
    order: tokio::sync::Mutex<()>,
    watchers: Mutex<HashSet<Arc<str>>>,
}

impl Subscriptions {
    /// Adds a watcher. `ask` asks the server when nobody watched before, and says whether it agreed.
    pub(super) async fn add(&self, session: &Arc<str>, uri: &str, ask: impl AsyncFnOnce() -> bool) -> Changed {
        let topic = self.topic(uri);
        let order = topic.order.lock().await;
        let is_first = topic.watchers.lock().is_empty();
        let changed = if is_first && !ask().await {
            Changed::Asked
        } else {
            topic.watchers.lock().insert(Arc::clone(session));
            if is_first { Changed::Asked } else { Changed::Alone }
        };
        drop(order);
        self.forget_unused(uri, topic);
        changed
    }

    /// Removes a watcher. `tell` tells the server when nobody watches any more.
    pub(super) async fn remove(&self, session: &str, uri: &str, tell: impl AsyncFnOnce()) -> Changed {
        let topic = self.topic(uri);
        let order = topic.order.lock().await;
        let is_last = {
            let mut watchers = topic.watchers.lock();
            watchers.remove(session);
            watchers.is_empty()
        };
        if is_last {
            tell().await;
        }
        drop(order);
        self.forget_unused(uri, topic);
        if is_last { Changed::Asked } else { Changed::Alone }
    }

    /// Those who watch a resource.
    pub(super) fn watchers(&self, uri: &str) -> Vec<Arc<str>> {
        let topic = self.0.lock().get(uri).cloned();
        topic.map(|topic| topic.watchers.lock().iter().cloned().collect()).unwrap_or_default()
    }

    /// Forgets a session, and names the resources that nobody watches any more.
    pub(super) fn forget(&self, session: &str) -> Vec<Box<str>> {
        let mut unwatched = Vec::new();
        self.0.lock().retain(|uri, topic| {
            let mut watchers = topic.watchers.lock();
            let is_last = watchers.remove(session) && watchers.is_empty();
            if is_last {
                unwatched.push(uri.clone());
            }
            !is_last || Arc::strong_count(topic) > 1
        });
        unwatched
    }

    /// Forgets all, because the server that knew them is gone; what is watched is named.
    pub(super) fn uris(&self) -> Vec<Box<str>> {
        self.0
            .lock()
            .iter()
            .filter(|(_, topic)| !topic.watchers.lock().is_empty())
            .map(|(uri, _)| uri.clone())
            .collect()
    }

    fn topic(&self, uri: &str) -> Arc<Topic> {
        Arc::clone(self.0.lock().entry(uri.into()).or_default())
    }

    fn forget_unused(&self, uri: &str, topic: Arc<Topic>) {
        let mut topics = self.0.lock();
        drop(topic);
        if topics.get(uri).is_some_and(|topic| Arc::strong_count(topic) == 1 && topic.watchers.lock().is_empty()) {
            topics.remove(uri);
        }
    }
}

/// Whether the server had a part in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    /// It was asked, and its answer is the answer.
    Asked,
    /// It did not have to know.
    Alone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_server_hears_of_the_first_and_the_last_only() {
        let subscriptions = Subscriptions::default();
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        assert_eq!(subscriptions.add(&a, "x", async || true).await, Changed::Asked);
        assert_eq!(subscriptions.add(&b, "x", async || panic!("asked again")).await, Changed::Alone);
        assert_eq!(subscriptions.watchers("x").len(), 2);
        assert_eq!(subscriptions.remove("a", "x", async || panic!("told too early")).await, Changed::Alone);
        assert_eq!(subscriptions.remove("b", "x", async || ()).await, Changed::Asked);
        assert!(subscriptions.watchers("x").is_empty() && subscriptions.0.lock().is_empty());
    }

    #[tokio::test]
    async fn a_refused_subscription_leaves_nothing() {
        let subscriptions = Subscriptions::default();
        let a = Arc::from("a");
        subscriptions.add(&a, "x", async || false).await;
        assert!(subscriptions.0.lock().is_empty());
        let mut asked = false;
        subscriptions
            .add(&a, "x", async || {
                asked = true;
                true
            })
            .await;
        assert!(asked, "the next one asks again");
        assert_eq!(subscriptions.uris(), [Box::<str>::from("x")]);
        assert_eq!(subscriptions.forget("a"), [Box::<str>::from("x")]);
        assert!(subscriptions.forget("a").is_empty() && subscriptions.uris().is_empty());
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
                true
            };
            hanging.add(&Arc::from("a"), "x", ask).await;
        });
        while subscriptions.0.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        subscriptions.add(&Arc::from("b"), "y", async || true).await;
        let (second, told) = (Arc::clone(&subscriptions), Arc::clone(&order));
        let removed =
            tokio::spawn(async move { second.remove("a", "x", async || told.lock().push("unsubscribed")).await });
        release.send(()).unwrap();
        hung.await.unwrap();
        removed.await.unwrap();
        assert_eq!(*order.lock(), ["subscribed", "unsubscribed"]);
    }
}
