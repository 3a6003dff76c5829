//! How many bytes of large messages are held at the same time, whoever they are from. Small ones, which most are, are not
//! counted: there are no more of them than connections, and than may wait for each session.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages up to this size are not counted.
pub(crate) const SMALL: usize = 64 << 10;

/// Bytes that may be held. Clones share them.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Semaphore>);

/// So many are held that there is no room for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proxy holds too many bytes for clients that do not read them")]
pub(crate) struct Spent;

/// How many bytes one message of a server may have, and the budget that it shares with all others.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    pub(crate) largest: usize,
    pub(crate) budget: Budget,
}

/// The room that a message has.
#[derive(Debug, Default)]
pub(crate) struct Held(Option<OwnedSemaphorePermit>);

/// A message, and whatever has to be kept for as long as it is.
struct Together<K> {
    bytes: Bytes,
    #[expect(dead_code, reason = "it is held")]
    kept: K,
}

impl<K> AsRef<[u8]> for Together<K> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Budget {
    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// Makes room for a message that has so many bytes by now.
    pub(crate) fn grow(&self, held: &mut Held, bytes: usize) -> Result<(), Spent> {
        let has = held.0.as_ref().map_or(SMALL, OwnedSemaphorePermit::num_permits);
        if bytes <= has { Ok(()) } else { self.take(held, bytes) }
    }

    /// Waits for room for a message of so many bytes, which must not be more than all.
    pub(crate) async fn wait(&self, bytes: usize) -> Result<Held, Spent> {
        if bytes <= SMALL {
            return Ok(Held::default());
        }
        let needed = u32::try_from(bytes.next_multiple_of(SMALL)).map_err(|_| Spent)?;
        Ok(Held(Some(Arc::clone(&self.0).acquire_many_owned(needed).await.map_err(|_| Spent)?)))
    }

    #[cold]
    fn take(&self, held: &mut Held, bytes: usize) -> Result<(), Spent> {
        let has = held.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        // In steps, because bodies come in small pieces.
        let missing = u32::try_from((bytes - has).next_multiple_of(SMALL)).map_err(|_| Spent)?;
        let more = Arc::clone(&self.0).try_acquire_many_owned(missing).map_err(|_| Spent)?;
        match &mut held.0 {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

impl Budget {
    /// A copy of a message that has room here, if there is some. A small one needs none.
    pub(crate) fn copy(&self, message: &Bytes) -> Option<Bytes> {
        if message.len() <= SMALL {
            return Some(message.clone());
        }
        let mut held = Held::default();
        self.grow(&mut held, message.len()).ok()?;
        Some(held.with(Bytes::copy_from_slice(message)))
    }

    /// Whether there is room for a message of so many bytes.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        bytes <= SMALL || self.0.available_permits() >= bytes.next_multiple_of(SMALL)
    }
}

impl Allowance {
    /// Has room for so many bytes, whether that is more than before or less.
    pub(crate) fn keep(&self, held: &mut Held, bytes: usize) -> Result<(), Spent> {
        if bytes <= SMALL {
            *held = Held::default();
            return Ok(());
        }
        self.budget.grow(held, bytes).inspect_err(|Spent| {
            tracing::warn!(bytes, "gave up an answer, because too many bytes are held for clients");
        })
    }
}

impl Held {
    /// The message, which has its room until the last piece of it is gone.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        match self.0 {
            Some(kept) => Bytes::from_owner(Together { bytes, kept }),
            None => bytes,
        }
    }
}

/// A message, or what was made of it.
pub(crate) fn changed(message: Bytes, made: Option<Bytes>) -> Bytes {
    match made {
        Some(made) => made_of(&message, made),
        None => message,
    }
}

/// Something that was made of a message, which keeps the room of that one.
pub(crate) fn made_of(message: &Bytes, bytes: Bytes) -> Bytes {
    if message.len() <= SMALL {
        return bytes;
    }
    Bytes::from_owner(Together { bytes, kept: message.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_messages_have_room_until_their_last_piece_is_gone_and_small_ones_need_none() {
        let budget = Budget::new(4 * SMALL);
        let large = || {
            let mut held = Held::default();
            for bytes in [1, SMALL, SMALL + 1, 2 * SMALL, 2 * SMALL] {
                budget.grow(&mut held, bytes)?;
            }
            Ok(held.with(vec![0; 2 * SMALL].into()))
        };
        let (first, second) = (large().unwrap(), large().unwrap());
        assert_eq!(large(), Err(Spent));
        let mut small = Held::default();
        budget.grow(&mut small, SMALL).unwrap();
        assert!(small.0.is_none());
        let (piece, copy) = (first.slice(..1), made_of(&second, Bytes::from_static(b"made of it")));
        drop((first, second));
        assert_eq!(large(), Err(Spent));
        drop(piece);
        let third = large().unwrap();
        assert_eq!((large(), &*copy), (Err(Spent), &b"made of it"[..]));
        drop((copy, third));
        assert_eq!(budget.0.available_permits(), 4 * SMALL);
    }
}
