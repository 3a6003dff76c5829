//! Random changes, watches, compactions and reopenings, compared with a model that remembers everything.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const RESOURCES: [&str; 2] = [PODS, "apps/deployments"];
const NAMESPACES: [&str; 3] = ["a", "a-b", "b"];

#[derive(Debug, Clone)]
enum Operation {
    Create(Key, u8),
    Update {
        key: Key,
        stale: bool,
        text: u8,
    },
    Delete {
        key: Key,
        stale: bool,
    },
    /// Several at once, which may share a transaction.
    Burst(Vec<(Key, u8)>),
    /// How far back from now.
    Compact(u64),
    Watch {
        resource: &'static str,
        namespace: Option<&'static str>,
        back: u64,
    },
    /// Reads what a watch has waiting, at most so many.
    Read(prop::sample::Index, usize),
    List {
        resource: &'static str,
        namespace: Option<&'static str>,
        back: u64,
        limit: usize,
    },
    Reopen,
}

fn key() -> impl Strategy<Value = Key> {
    (prop::sample::select(&RESOURCES[..]), prop::sample::select(&NAMESPACES[..]), 0..4_u8)
        .prop_map(|(resource, namespace, name)| Key::new(resource, namespace, format!("{name}")))
}

fn scope() -> impl Strategy<Value = (&'static str, Option<&'static str>)> {
    (prop::sample::select(&RESOURCES[..]), prop::option::of(prop::sample::select(&NAMESPACES[..])))
}

fn operation() -> impl Strategy<Value = Operation> {
    let stale = prop::bool::weighted(0.1);
    prop_oneof![
        6 => (key(), any::<u8>()).prop_map(|(key, text)| Operation::Create(key, text)),
        6 => (key(), stale, any::<u8>()).prop_map(|(key, stale, text)| Operation::Update { key, stale, text }),
        4 => (key(), stale).prop_map(|(key, stale)| Operation::Delete { key, stale }),
        2 => prop::collection::vec((key(), any::<u8>()), 1..6).prop_map(Operation::Burst),
        1 => (0..6_u64).prop_map(Operation::Compact),
        3 => (scope(), 0..12_u64)
            .prop_map(|((resource, namespace), back)| Operation::Watch { resource, namespace, back }),
        6 => (any::<prop::sample::Index>(), 1..5_usize).prop_map(|(which, count)| Operation::Read(which, count)),
        3 => (scope(), 0..12_u64, 1..5_usize)
            .prop_map(|((resource, namespace), back, limit)| Operation::List { resource, namespace, back, limit }),
        1 => Just(Operation::Reopen),
    ]
}

/// When it was created, when it was changed, and its text.
type Object = (u64, u64, u8);
type Objects = BTreeMap<Key, Object>;
/// The revision, the object before and after.
type Happened = (u64, Option<Object>, Option<Object>);

struct Model {
    /// The objects at each revision, the first one first.
    past: Vec<Objects>,
    /// The key each revision changed.
    changed: Vec<Option<Key>>,
    oldest: u64,
    kept: u64,
}

impl Model {
    fn revision(&self) -> u64 {
        self.past.len() as u64
    }

    fn at(&self, revision: u64) -> &Objects {
        &self.past[usize::try_from(revision).unwrap() - 1]
    }

    fn now(&self) -> &Objects {
        self.past.last().unwrap()
    }

    fn change(&mut self, key: &Key, text: Option<u8>) {
        let revision = self.revision() + 1;
        let mut objects = self.now().clone();
        match text {
            None => drop(objects.remove(key)),
            Some(text) => {
                let created = objects.get(key).map_or(revision, |(created, ..)| *created);
                objects.insert(key.clone(), (created, revision, text));
            }
        }
        self.past.push(objects);
        self.changed.push(Some(key.clone()));
        self.oldest = self.oldest.max(revision.saturating_sub(self.kept));
    }

    /// The events of a scope after a revision.
    fn events(&self, watching: &Watching) -> Vec<Happened> {
        (watching.position + 1..=self.revision())
            .filter_map(|revision| {
                let key = self.changed[usize::try_from(revision).unwrap() - 1].as_ref()?;
                let concerned = *key.resource == *watching.resource
                    && watching.namespace.is_none_or(|namespace| *key.namespace == *namespace);
                concerned
                    .then(|| (revision, self.at(revision - 1).get(key).copied(), self.at(revision).get(key).copied()))
            })
            .collect()
    }
}

struct Watching {
    watch: Watch,
    resource: &'static str,
    namespace: Option<&'static str>,
    position: u64,
}

fn brief_record(record: &Arc<Record>) -> Object {
    let text = std::str::from_utf8(&record.object.bytes()).unwrap().parse().unwrap();
    assert_eq!(record.labels, content(&format!("{text}")).labels);
    (record.created, record.revision, text)
}

struct Run {
    folder: Option<tempfile::TempDir>,
    store: Store,
    model: Model,
    watches: Vec<Watching>,
}

impl Run {
    fn new(on_disk: bool, kept: u64) -> Self {
        let folder = on_disk.then(|| tempfile::tempdir().unwrap());
        let store = Self::open(folder.as_ref(), kept);
        let model = Model { past: vec![Objects::new()], changed: vec![None], oldest: 1, kept };
        Self { folder, store, model, watches: Vec::new() }
    }

    fn open(folder: Option<&tempfile::TempDir>, kept: u64) -> Store {
        let history = HistoryLimits { events: usize::try_from(kept).unwrap(), ..HistoryLimits::default() };
        let options = Options { durability: Durability::None, history, ..Options::default() };
        Store::open_with(folder.map(tempfile::TempDir::path), options).unwrap()
    }

    async fn step(&mut self, operation: Operation) {
        match operation {
            Operation::Create(key, text) => self.create(key, text).await,
            Operation::Update { key, stale, text } => self.update(key, stale, text).await,
            Operation::Delete { key, stale } => self.delete(key, stale).await,
            Operation::Burst(creations) => self.burst(creations).await,
            Operation::Compact(back) => self.compact(back),
            Operation::Watch { resource, namespace, back } => self.watch(resource, namespace, back),
            Operation::Read(which, count) => self.read(which, count).await,
            Operation::List { resource, namespace, back, limit } => self.list(resource, namespace, back, limit),
            Operation::Reopen => self.reopen().await,
        }
        assert_eq!(self.store.revision(), self.model.revision());
        assert_eq!(self.store.oldest_revision(), self.model.oldest);
    }

    async fn create(&mut self, key: Key, text: u8) {
        let outcome = self.store.commit(Change::Create { key: key.clone(), content: content(&text.to_string()) }).await;
        if self.model.now().contains_key(&key) {
            assert_eq!(outcome.unwrap_err(), CommitError::AlreadyExists);
        } else {
            self.model.change(&key, Some(text));
            assert_eq!(outcome.unwrap().revision, self.model.revision());
        }
    }

    async fn update(&mut self, key: Key, stale: bool, text: u8) {
        let current = self.model.now().get(&key).map(|(_, revision, _)| *revision);
        let expected = current.unwrap_or(1) - u64::from(stale);
        let change = Change::Update { key: key.clone(), expected, content: content(&text.to_string()) };
        self.judge(current, stale, change, Some(text)).await;
    }

    async fn delete(&mut self, key: Key, stale: bool) {
        let current = self.model.now().get(&key).map(|(_, revision, _)| *revision);
        let expected = current.unwrap_or(1) - u64::from(stale);
        self.judge(current, stale, Change::Delete { key, expected }, None).await;
    }

    async fn judge(&mut self, current: Option<u64>, stale: bool, change: Change, text: Option<u8>) {
        let key = change.key().clone();
        let outcome = self.store.commit(change).await;
        match current {
            None => assert_eq!(outcome.unwrap_err(), CommitError::NotFound),
            Some(current) if stale => assert_eq!(outcome.unwrap_err(), CommitError::Conflict { current }),
            Some(_) => {
                self.model.change(&key, text);
                assert_eq!(outcome.unwrap().revision, self.model.revision());
            }
        }
    }

    async fn burst(&mut self, creations: Vec<(Key, u8)>) {
        let outcomes = futures::future::join_all(creations.iter().map(|(key, text)| {
            self.store.commit(Change::Create { key: key.clone(), content: content(&text.to_string()) })
        }));
        for ((key, text), outcome) in creations.iter().zip(outcomes.await) {
            if self.model.now().contains_key(key) {
                assert_eq!(outcome.unwrap_err(), CommitError::AlreadyExists);
            } else {
                self.model.change(key, Some(*text));
                assert_eq!(outcome.unwrap().revision, self.model.revision());
            }
        }
    }

    fn compact(&mut self, back: u64) {
        let revision = self.model.revision().saturating_sub(back);
        let outcome = self.store.compact(revision);
        assert_eq!(outcome.is_ok(), revision >= self.model.oldest);
        self.model.oldest = self.model.oldest.max(revision);
    }

    fn watch(&mut self, resource: &'static str, namespace: Option<&'static str>, back: u64) {
        let position = self.model.revision().saturating_sub(back);
        match self.store.watch(resource, namespace, Some(position)) {
            Ok(watch) => {
                assert!(position >= self.model.oldest);
                self.watches.push(Watching { watch, resource, namespace, position });
            }
            Err(error) => {
                assert_eq!(error, RevisionError::Expired { requested: position, oldest: self.model.oldest });
            }
        }
    }

    async fn read(&mut self, which: prop::sample::Index, count: usize) {
        if self.watches.is_empty() {
            return;
        }
        let place = which.index(self.watches.len());
        let watching = &mut self.watches[place];
        let expected = self.model.events(watching);
        if watching.position < self.model.oldest {
            let end = tokio::time::timeout(Duration::from_secs(10), watching.watch.next()).await.unwrap().unwrap_err();
            assert!(matches!(end, WatchEnd::Lagged { .. }), "{end}");
            self.watches.remove(place);
            return;
        }
        for (revision, before, after) in expected.iter().take(count) {
            let event = tokio::time::timeout(Duration::from_secs(10), watching.watch.next()).await.unwrap().unwrap();
            assert_eq!(event.revision, *revision);
            assert_eq!(event.before().map(brief_record), *before);
            assert_eq!(event.after().map(brief_record), *after);
            watching.position = event.revision;
        }
        let waiting = expected.get(count).map(|(revision, ..)| *revision);
        let progress = waiting.map_or(self.model.revision(), |revision| revision - 1);
        assert_eq!(watching.watch.progress(), Ok(progress));
        watching.position = progress;
    }

    /// Page by page, the list of an older revision.
    fn list(&mut self, resource: &'static str, namespace: Option<&'static str>, back: u64, limit: usize) {
        let revision = self.model.revision().saturating_sub(back).max(1);
        let selection = Selection { namespace, ..Selection::all(resource) };
        if revision < self.model.oldest {
            let expired = RevisionError::Expired { requested: revision, oldest: self.model.oldest };
            assert_eq!(self.store.list_at(revision, &selection), Err(expired));
            return;
        }
        let expected: Vec<_> = self
            .model
            .at(revision)
            .iter()
            .filter(|(key, _)| *key.resource == *resource && namespace.is_none_or(|name| *key.namespace == *name))
            .map(|(key, object)| (key.clone(), *object))
            .collect();
        let mut listed: Vec<(Key, Object)> = Vec::new();
        loop {
            let after = listed.last().map(|(key, _)| key.clone());
            let after = after.as_ref().map(Key::position);
            let page = self.store.list_at(revision, &Selection { after, limit: Some(limit), ..selection }).unwrap();
            listed.extend(page.records.iter().map(|record| (record.key.clone(), brief_record(record))));
            assert_eq!(page.revision, revision);
            assert_eq!(page.remaining, expected.len() - listed.len());
            if page.remaining == 0 {
                break;
            }
        }
        assert_eq!(listed, expected);
        if back == 0 {
            assert_eq!(self.store.list(&selection), self.store.list_at(revision, &selection).unwrap());
        }
    }

    async fn reopen(&mut self) {
        if self.folder.is_none() {
            return;
        }
        self.store.close().await;
        for mut watching in self.watches.drain(..) {
            while watching.watch.next().await.is_ok() {}
        }
        self.store = Self::open(self.folder.as_ref(), self.model.kept);
        self.model.oldest = self.model.revision();
    }
}

fn check(on_disk: bool, kept: u64, operations: Vec<Operation>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut run = Run::new(on_disk, kept);
        for operation in operations {
            run.step(operation).await;
        }
        for resource in RESOURCES {
            run.list(resource, None, 0, 3);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_store_in_memory_is_the_model(kept in 1..12_u64, operations in prop::collection::vec(operation(), 1..120)) {
        check(false, kept, operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_store_on_disk_is_the_model(kept in 1..12_u64, operations in prop::collection::vec(operation(), 1..60)) {
        check(true, kept, operations);
    }
}
