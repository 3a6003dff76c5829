//! Who watches which resource. The server has one subscription for all clients that watch the same.

mod places;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

pub(super) use self::places::Unwatched;
use self::places::{Place, Places};
use super::events::End;
use crate::limits;

/// All resources that are watched.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    topics: Mutex<HashMap<Box<str>, Arc<Topic>>>,
    places: Arc<Places>,
}

/// One resource.
#[derive(Debug, Default)]
struct Topic {
    /// Held while the server is told, so that it hears of changes in the order in which they were decided. Other
    /// resources do not wait.
    order: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    watchers: HashMap<Arc<str>, Place>,
    /// Whether the server may have a subscription.
    is_subscribed: bool,
    /// Whether somebody is about to tell it something.
    is_changing: bool,
}

impl State {
    /// Calls `tell` if the server has a subscription that nobody needs, unless somebody else sees to it.
    fn settle(&mut self, tell: impl FnOnce()) {
        if self.watchers.is_empty() && !self.is_changing && std::mem::take(&mut self.is_subscribed) {
            tell();
        }
    }
}

impl Subscriptions {
    /// Adds a watcher, if that one is still there in the end. `ask` asks the server when nobody watched before, and `tell`
    /// takes that back when nobody is left to watch. One that watches enough already is refused before anybody is asked.
    pub(super) async fn add(
        &self,
        session: &Arc<str>,
        uri: &str,
        is_there: impl Fn() -> bool,
        ask: impl AsyncFnOnce() -> End,
        tell: impl Fn(),
    ) -> Result<Changed, Unwatched> {
        if uri.len() > limits::WATCHED_URI_BYTES {
            return Err(Unwatched::TooLong);
        }
        let topic = self.topic(uri);
        let _order = topic.order.lock().await;
        // Whoever watches it already needs no more room.
        let is_known = topic.state.lock().watchers.contains_key(session);
        let place = if is_known { None } else { Some(self.places.take(session)?) };
        let turn = Turn::new(&topic, tell);
        let is_first = turn.state.lock().watchers.is_empty();
        if is_first {
            // Whoever gives up meanwhile does not know what became of it.
            turn.state.lock().is_subscribed = true;
            let end = ask().await;
            if end != End::Answered {
                turn.state.lock().is_subscribed = !matches!(end, End::Refused(_));
                return Ok(Changed::Asked);
            }
        }
        let mut state = turn.state.lock();
        // A session is forgotten under the same lock, after it is gone.
        if let Some(place) = place.filter(|_| is_there()) {
            state.watchers.insert(Arc::clone(session), place);
        }
        drop(state);
        Ok(if is_first { Changed::Asked } else { Changed::Alone })
    }

    /// Removes a watcher. `tell` tells the server when nobody watches any more.
    pub(super) async fn remove(&self, session: &str, uri: &str, tell: impl AsyncFnOnce()) -> Changed {
        let topic = self.topic(uri);
        let _order = topic.order.lock().await;
        let turn = Turn::new(&topic, || ());
        let is_last = {
            let mut state = turn.state.lock();
            state.watchers.remove(session);
            state.is_subscribed &= !state.watchers.is_empty();
            state.watchers.is_empty()
        };
        if is_last {
            tell().await;
        }
        if is_last { Changed::Asked } else { Changed::Alone }
    }

    /// Those who watch a resource.
    pub(super) fn watchers(&self, uri: &str) -> Vec<Arc<str>> {
        // Whoever looks is no owner of the topic, so that nobody who ends meanwhile takes it for one that is in use.
        let topics = self.topics.lock();
        topics.get(uri).map(|topic| topic.state.lock().watchers.keys().cloned().collect()).unwrap_or_default()
    }

    /// Forgets a session. `tell` tells the server of a resource that nobody watches any more.
    pub(super) fn forget(&self, session: &str, tell: impl Fn(&str)) {
        self.topics.lock().retain(|uri, topic| {
            let mut state = topic.state.lock();
            if state.watchers.remove(session).is_some() {
                state.settle(|| tell(uri));
            }
            !state.watchers.is_empty() || Arc::strong_count(topic) > 1
        });
    }

    /// The resources that somebody watches.
    pub(super) fn uris(&self) -> Vec<Box<str>> {
        let topics = self.topics.lock();
        let watched = topics.iter().filter(|(_, topic)| !topic.state.lock().watchers.is_empty());
        watched.map(|(uri, _)| uri.clone()).collect()
    }

    fn topic(&self, uri: &str) -> InUse<'_> {
        let topic = Arc::clone(self.topics.lock().entry(uri.into()).or_default());
        InUse { subscriptions: self, uri: uri.into(), topic }
    }
}

/// The turn of somebody who changes something about a resource. With its end, also when it is given up, the server has a
/// subscription only if somebody watches.
struct Turn<'a, T: Fn()> {
    state: &'a Mutex<State>,
    tell: T,
}

impl<'a, T: Fn()> Turn<'a, T> {
    fn new(topic: &'a Topic, tell: T) -> Self {
        topic.state.lock().is_changing = true;
        Self { state: &topic.state, tell }
    }
}

impl<T: Fn()> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.is_changing = false;
        state.settle(&self.tell);
    }
}

/// A resource that somebody waits for or changes. It is forgotten with the last of them if nobody watches it.
struct InUse<'a> {
    subscriptions: &'a Subscriptions,
    uri: Box<str>,
    topic: Arc<Topic>,
}

impl Deref for InUse<'_> {
    type Target = Topic;

    fn deref(&self) -> &Topic {
        &self.topic
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut topics = self.subscriptions.topics.lock();
        // Ours goes while the map is locked: of those who end together, one has to see that it is the last.
        drop(std::mem::take(&mut self.topic));
        let is_unused = |topic: &Arc<Topic>| Arc::strong_count(topic) == 1 && topic.state.lock().watchers.is_empty();
        if topics.get(&self.uri).is_some_and(is_unused) {
            topics.remove(&self.uri);
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
mod tests;
