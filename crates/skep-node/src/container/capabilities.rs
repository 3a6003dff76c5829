//! The privileges that a container's programs may have.

use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

/// Those that containers usually have, by the names that manifests use.
const USUAL: [(&str, CapabilitySet); 7] = [
    ("CHOWN", CapabilitySet::CHOWN),
    ("DAC_OVERRIDE", CapabilitySet::DAC_OVERRIDE),
    ("FOWNER", CapabilitySet::FOWNER),
    ("KILL", CapabilitySet::KILL),
    ("NET_BIND_SERVICE", CapabilitySet::NET_BIND_SERVICE),
    ("SETGID", CapabilitySet::SETGID),
    ("SETUID", CapabilitySet::SETUID),
];

/// A set of them. By default all that containers usually have; there is no way to more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities(u64);

impl Default for Capabilities {
    fn default() -> Self {
        Self(USUAL.iter().fold(0, |all, (_, one)| all | one.bits()))
    }
}

impl Capabilities {
    /// The usual ones, less those to drop, and those to add again; `ALL` means all of them. Names that mean none of the
    /// usual ones are given back: dropping them changes nothing, and adding them cannot be done.
    pub fn of<'a>(
        add: impl IntoIterator<Item = &'a str>,
        drop: impl IntoIterator<Item = &'a str>,
    ) -> (Self, Vec<&'a str>) {
        let mut set = Self::default().0;
        for name in drop {
            set &= !bits(name).unwrap_or(0);
        }
        let mut refused = Vec::new();
        for name in add {
            match bits(name) {
                Some(bits) => set |= bits,
                None => refused.push(name),
            }
            if is_all(name) {
                refused.push(name);
            }
        }
        (Self(set), refused)
    }

    pub(super) fn set(self) -> CapabilitySet {
        CapabilitySet::from_bits_retain(self.0)
    }
}

fn is_all(name: &str) -> bool {
    name.eq_ignore_ascii_case("ALL")
}

fn bits(name: &str) -> Option<u64> {
    if is_all(name) {
        return Some(Capabilities::default().0);
    }
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("CAP_").unwrap_or(&name);
    USUAL.iter().find(|(known, _)| *known == name).map(|(_, one)| one.bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_dropped_and_some_of_those_added_again() {
        assert_eq!(Capabilities::of([], []), (Capabilities::default(), vec![]));
        let (none, refused) = Capabilities::of([], ["ALL"]);
        assert_eq!((none.set(), refused), (CapabilitySet::empty(), vec![]));
        let (one, refused) = Capabilities::of(["NET_BIND_SERVICE", "CAP_SYS_ADMIN"], ["all"]);
        assert_eq!((one.set(), refused), (CapabilitySet::NET_BIND_SERVICE, vec!["CAP_SYS_ADMIN"]));
        let (most, refused) = Capabilities::of([], ["KILL", "SYS_PTRACE"]);
        assert!(!most.set().contains(CapabilitySet::KILL) && most.set().contains(CapabilitySet::CHOWN));
        assert!(refused.is_empty(), "nobody has it anyway");
        assert_eq!(Capabilities::of(["ALL"], []).1, ["ALL"]);
    }
}
