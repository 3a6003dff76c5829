//! Random numbers that are needed with every request. The generator is asked for many at once, because being asked is what
//! costs most of its time.

use std::cell::RefCell;

/// So many bytes are fetched at once.
const STORE: usize = 1 << 10;

thread_local! {
    static BYTES: RefCell<Store> = const { RefCell::new(Store { bytes: [0; STORE], used: STORE }) };
}

/// Bytes of which the first ones were given away.
struct Store {
    bytes: [u8; STORE],
    used: usize,
}

/// As many bytes as nobody else gets. Keys need their own: what is here stays in memory for a while.
pub(crate) fn bytes<const COUNT: usize>() -> [u8; COUNT] {
    const { assert!(COUNT <= STORE) };
    BYTES.with_borrow_mut(|store| {
        if STORE - store.used < COUNT {
            // The generator fails only where the machine has none, and then any number will do.
            let _ = aws_lc_rs::rand::fill(&mut store.bytes);
            store.used = 0;
        }
        let mut taken = [0; COUNT];
        taken.copy_from_slice(&store.bytes[store.used..store.used + COUNT]);
        store.used += COUNT;
        taken
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn nobody_gets_the_same_bytes() {
        let taken = || (0..STORE).map(|_| bytes::<24>()).collect::<Vec<_>>();
        let other = std::thread::spawn(taken).join().unwrap();
        let all: HashSet<_> = taken().into_iter().chain(other).collect();
        assert_eq!(all.len(), 2 * STORE);
    }
}
