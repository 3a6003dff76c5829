//! How long a resource is served as it is.
//!
//! A resource whose definition changes is another one from then on: watches of the former end, and its objects may look
//! different. Kinds that are part of the server are served for ever.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

/// The time in which a resource is served as it is. All clones are one.
#[derive(Debug, Clone, Default)]
pub struct Tenure {
    /// What is served, in short.
    what: [u8; 32],
    since: u64,
    ended: Arc<watch::Sender<bool>>,
}

impl Tenure {
    /// Serving what a text says, since a revision.
    pub fn of(what: &str, since: u64) -> Self {
        Self { what: Sha256::digest(what).into(), since, ended: Arc::default() }
    }

    /// The tenure before this one, if what is served is still the same.
    pub fn resumed(self, before: Option<&Self>) -> Self {
        before.filter(|before| before.what == self.what).cloned().unwrap_or(self)
    }

    /// The revision of the change with which it began. What was written later was written under it.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Whether this is the same tenure as another one.
    pub fn continues(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ended, &other.ended)
    }

    pub fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Waits for the end.
    pub async fn ended(&self) {
        // The sender is part of this, so that it cannot go away meanwhile.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tenure_goes_on_while_the_same_is_served() {
        let first = Tenure::of("a", 3);
        let same = Tenure::of("a", 9).resumed(Some(&first));
        assert!(same.continues(&first));
        assert_eq!(same.since(), 3);
        let other = Tenure::of("b", 9).resumed(Some(&first));
        assert!(!other.continues(&first));
        assert_eq!(other.since(), 9);
        first.end();
        same.ended().await;
    }
}
