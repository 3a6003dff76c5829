//! Lists: one page of the objects of a resource, as they are now or as they were at an older revision.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::from_fn;
use std::sync::Arc;

use super::event::Event;
use super::key::Key;
use super::record::Record;

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub records: Vec<Arc<Record>>,
    /// The revision at which the list is true.
    pub revision: u64,
    /// How many records follow the last one.
    pub remaining: usize,
}

/// Which objects to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection<'a> {
    pub resource: &'a str,
    /// None: in all of them.
    pub namespace: Option<&'a str>,
    /// Where the last page ended: the namespace and name of its last record.
    pub after: Option<(&'a str, &'a str)>,
    /// None: all of them.
    pub limit: Option<usize>,
}

impl<'a> Selection<'a> {
    pub fn all(resource: &'a str) -> Self {
        Self { resource, namespace: None, after: None, limit: None }
    }

    pub(super) fn page(&self, revision: u64, records: impl Iterator<Item = &'a Arc<Record>>) -> Page {
        let mut rest = records;
        let records = rest.by_ref().take(self.limit.unwrap_or(usize::MAX)).cloned().collect();
        Page { records, revision, remaining: rest.count() }
    }
}

/// The objects that were different at an older revision, as they were then (None: they did not exist), worked out from
/// the events since.
pub(super) type Past = BTreeMap<Key, Option<Arc<Record>>>;

/// Undoes events, given newest first.
pub(super) fn undo<'a>(newest_first: impl Iterator<Item = &'a Event>) -> Past {
    let mut past = Past::new();
    for event in newest_first {
        past.insert(event.key().clone(), event.before().cloned());
    }
    past
}

/// The records of now with those of the past in their place, in order.
pub(super) fn overlay<'a>(
    current: impl Iterator<Item = &'a Arc<Record>>,
    past: impl Iterator<Item = (&'a Key, &'a Option<Arc<Record>>)>,
) -> impl Iterator<Item = &'a Arc<Record>> {
    let mut current = current.peekable();
    let mut past = past.peekable();
    from_fn(move || {
        loop {
            let order = match (current.peek(), past.peek()) {
                (Some(record), Some((key, _))) => record.key.cmp(key),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            if order == Ordering::Less {
                return current.next();
            }
            if order == Ordering::Equal {
                current.next();
            }
            if let Some((_, Some(record))) = past.next() {
                return Some(record);
            }
        }
    })
}
