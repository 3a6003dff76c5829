//! Until when it is good what a server is shown.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::Extensions;
use http::header::AUTHORIZATION;
use http::request::Parts;
use serde_json::Value;

use super::identity;

/// The end of a credential, as the step that put it onto a request knows.
#[derive(Debug, Clone, Copy)]
struct GoodUntil(Instant);

/// Notes the end of a credential with the request that has it. Where there are several, the first end counts.
pub(super) fn note(extensions: &mut Extensions, until: Option<Instant>) {
    let before = extensions.get::<GoodUntil>().map(|GoodUntil(until)| *until);
    if let Some(until) = before.into_iter().chain(until).min() {
        extensions.insert(GoodUntil(until));
    }
}

/// When what a request shows to the server ends: what steps have put there, or else the caller's own token. Nothing when
/// that is not known.
pub(crate) fn of(parts: &Parts) -> Option<Instant> {
    if let Some(GoodUntil(until)) = parts.extensions.get() {
        return Some(*until);
    }
    let identity = identity::of_token(&parts.extensions).filter(|_| parts.headers.contains_key(AUTHORIZATION))?;
    let ends = identity.claims.get("exp").and_then(Value::as_f64)?;
    let ends = Duration::try_from_secs_f64(ends).ok()?;
    let left = ends.saturating_sub(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    Instant::now().checked_add(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_end_counts() {
        let (mut extensions, now) = (Extensions::new(), Instant::now());
        note(&mut extensions, None);
        assert!(extensions.get::<GoodUntil>().is_none());
        for (seconds, expected) in [(60, 60), (30, 30), (90, 30)] {
            note(&mut extensions, Some(now + Duration::from_secs(seconds)));
            let GoodUntil(until) = extensions.get().unwrap();
            assert_eq!(*until, now + Duration::from_secs(expected));
        }
        note(&mut extensions, None);
        assert!(extensions.get::<GoodUntil>().is_some());
    }
}
