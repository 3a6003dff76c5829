//! Passes that were interrupted again and again: in the end that is told.

use std::collections::HashMap;

use parking_lot::Mutex;
use skep_control::{Failure as _, Key};

use super::build::Stop;

/// How many passes in a row are interrupted before the workload tells of it. With the pauses between them that is some
/// seconds: an API server that starts anew, or a webhook that is replaced, is nothing to tell of.
const PATIENCE: u32 = 8;

/// How often the passes over each workload were interrupted in a row.
#[derive(Debug, Default)]
pub struct Setbacks(Mutex<HashMap<Key, u32>>);

impl Setbacks {
    /// Counts an interruption and turns it into something to tell once there were enough. Anything else ends the row.
    pub fn judge(&self, key: Key, built: Result<(), Stop>) -> Result<(), Stop> {
        match built {
            // Somebody else was faster: that says nothing.
            Err(Stop::Interrupted(_, ref failure)) if failure.is_conflict() => built,
            Err(Stop::Interrupted(incomplete, failure)) => {
                let mut counts = self.0.lock();
                let count = counts.entry(key).or_default();
                *count = count.saturating_add(1);
                if *count < PATIENCE {
                    Err(Stop::Interrupted(incomplete, failure))
                } else {
                    Err(Stop::Told(incomplete, Err(failure)))
                }
            }
            other => {
                self.forget(&key);
                other
            }
        }
    }

    /// Forgets a workload that is gone, or whose pass went well.
    pub fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use skep_api::conditions::reasons;

    use super::*;
    use crate::failure::Failure;
    use crate::proxy::build::Incomplete;

    #[test]
    fn what_stays_is_told() {
        let setbacks = Setbacks::default();
        let key = Key::new("n", "a");
        let interrupted = |key: &Key| {
            let incomplete = Incomplete::failed(reasons::NOT_READY, "no".to_owned());
            let stop = Stop::Interrupted(incomplete, Failure::Other("no".to_owned()));
            matches!(setbacks.judge(key.clone(), Err(stop)), Err(Stop::Told(..)))
        };
        let rows: Vec<bool> = (0..PATIENCE).map(|_| interrupted(&key)).collect();
        assert_eq!(rows.iter().position(|told| *told), Some(7));
        assert!(!interrupted(&Key::new("n", "b")));
        assert!(setbacks.judge(key.clone(), Ok(())).is_ok());
        assert!(!interrupted(&key));
    }
}
