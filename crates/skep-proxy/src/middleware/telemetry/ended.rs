//! Requests that have ended, and where those of one kind are counted: looked up once, because most requests are like one
//! before.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::quality::RandomState;
use parking_lot::RwLock;

use super::meters::Counted;
use super::series::{LABEL, SERIES};

/// A request that has ended, as far as it is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Ended<'a> {
    pub(super) verb: Cow<'a, str>,
    pub(super) status: u16,
    /// What it was about, if that is known.
    pub(super) operation: Option<Operation<'a>>,
    /// The version of HTTP that it came by.
    pub(super) version: Option<&'static str>,
}

/// What a request was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation<'a> {
    pub(super) method: Cow<'a, str>,
    pub(super) subject: Option<Cow<'a, str>>,
    pub(super) tool: Option<Cow<'a, str>>,
    pub(super) prompt: Option<Cow<'a, str>>,
}

impl Hash for Operation<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The name of a tool or prompt is what the operation is about.
        self.method.hash(state);
        self.subject.hash(state);
    }
}

impl Ended<'_> {
    /// Whether it is worth being kept. Clients choose what they call things, and some choose long names.
    fn is_short(&self) -> bool {
        let subject = self.operation.iter().flat_map(|operation| &operation.subject);
        let method = self.operation.iter().map(|operation| &operation.method);
        method.chain(subject).chain([&self.verb]).all(|text| text.len() <= LABEL)
    }

    fn into_owned(self) -> Ended<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let operation = self.operation.map(|operation| Operation {
            method: owned(operation.method),
            subject: operation.subject.map(owned),
            tool: operation.tool.map(owned),
            prompt: operation.prompt.map(owned),
        });
        Ended { verb: owned(self.verb), status: self.status, operation, version: self.version }
    }
}

/// Kinds of requests that were seen.
#[derive(Debug, Default)]
pub(super) struct Kinds(RwLock<All<'static>>);

type All<'a> = HashMap<Ended<'a>, Arc<Counted>, RandomState>;

impl Kinds {
    /// Where a request is counted; `find` looks it up when there was none of its kind.
    pub(super) fn of(&self, ended: &Ended<'_>, find: impl FnOnce() -> Counted) -> Arc<Counted> {
        if let Some(counted) = known(&self.0.read(), ended) {
            return counted;
        }
        let counted = Arc::new(find());
        let mut all = self.0.write();
        if all.len() < SERIES && ended.is_short() {
            all.insert(ended.clone().into_owned(), Arc::clone(&counted));
        }
        counted
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.read().len()
    }
}

/// Takes a kind that lives shorter than those that are kept.
fn known<'a>(all: &All<'a>, ended: &Ended<'a>) -> Option<Arc<Counted>> {
    all.get(ended).cloned()
}
