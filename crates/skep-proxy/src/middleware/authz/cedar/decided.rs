//! What was decided before. A decision depends on nothing but who asks, what is asked about, what its server says about it
//! and what policies look at of the arguments. Whoever asks the same once more is told the same, which is sooner done.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Denied, Principal};
use crate::middleware::authz::Verdict;
use crate::middleware::authz::hints::Hints;
use crate::middleware::authz::question::Feature;
use crate::middleware::identity::Identity;
use crate::middleware::remembered::Remembered;

/// So many callers are remembered, and so many decisions about each of them.
const CALLERS: usize = 512;
const DECISIONS: usize = 256;
/// What is longer than this is decided anew each time, in bytes.
const LARGEST: usize = 1 << 10;

/// Everything about a question that its answer depends on, besides who asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) feature: Feature,
    pub(super) id: String,
    pub(super) hints: Hints,
    /// The arguments that policies look at.
    pub(super) arguments: Vec<(String, String)>,
}

impl Asked {
    fn is_large(&self) -> bool {
        let arguments = self.arguments.iter().map(|(name, json)| name.len() + json.len());
        self.id.len() + arguments.sum::<usize>() > LARGEST
    }
}

/// A caller who was here before.
pub(in crate::middleware::authz) struct Known {
    pub(super) principal: Principal,
    decisions: Mutex<Remembered<Asked, Verdict>>,
    /// As long as somebody points to a place, nobody else can be there.
    _place: Weak<Identity>,
}

impl Known {
    /// What was decided, or what is decided now. A failure is not remembered.
    pub(super) fn decided(
        &self,
        asked: Asked,
        decide: impl FnOnce(&Asked) -> Result<Verdict, Denied>,
    ) -> Result<Verdict, Denied> {
        if let Some(decided) = self.decisions.lock().find(&asked) {
            return Ok(decided);
        }
        let decided = decide(&asked)?;
        if !asked.is_large() {
            self.decisions.lock().add(asked, decided.clone());
        }
        Ok(decided)
    }
}

/// The callers, by the places of their identities, which never change.
pub(super) struct Callers(Mutex<Remembered<usize, Arc<Known>>>);

impl Callers {
    /// Somebody who was here before, or is now.
    pub(super) fn find(
        &self,
        identity: &Arc<Identity>,
        read: impl FnOnce() -> Result<Principal, Denied>,
    ) -> Result<Arc<Known>, Denied> {
        let place = Arc::as_ptr(identity).addr();
        if let Some(known) = self.0.lock().find(&place) {
            return Ok(known);
        }
        let decisions = Mutex::new(Remembered::new(DECISIONS));
        let known = Arc::new(Known { principal: read()?, decisions, _place: Arc::downgrade(identity) });
        self.0.lock().add(place, Arc::clone(&known));
        Ok(known)
    }
}

impl Default for Callers {
    fn default() -> Self {
        Self(Mutex::new(Remembered::new(CALLERS)))
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Callers").finish_non_exhaustive()
    }
}
