//! The part of the loopback that one run without namespaces has for itself.
//!
//! All such runs of a machine share its loopback. Each marks the addresses that it uses, so that the next to come goes
//! elsewhere.

use std::collections::BTreeSet;
use std::io;

use ipnet::Ipv4Net;

use super::{NetworkError, Reach};
use crate::mark::Mark;

/// Addresses of the loopback that nobody else uses as long as this exists.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) reach: Reach,
    _marks: Vec<Mark>,
}

impl Claim {
    /// Finds room for these ranges.
    pub(super) fn make(ranges: &[Ipv4Net]) -> Result<Self, NetworkError> {
        let parts: BTreeSet<u8> = ranges.iter().copied().flat_map(second_parts).collect();
        for shift in 0..=u8::MAX {
            let marks = mark(&parts, shift).map_err(NetworkError::kernel("mark addresses of the loopback"))?;
            if let Some(marks) = marks {
                return Ok(Self { reach: Reach::on_loopback(shift), _marks: marks });
            }
        }
        Err(NetworkError::NoRoom)
    }
}

/// What the addresses of a range have in second place.
fn second_parts(range: Ipv4Net) -> std::ops::RangeInclusive<u8> {
    range.network().octets()[1]..=range.broadcast().octets()[1]
}

/// Marks the place of all parts; none when somebody has marked one of them.
fn mark(parts: &BTreeSet<u8>, shift: u8) -> io::Result<Option<Vec<Mark>>> {
    let mut marks = Vec::new();
    for part in parts {
        let moved = part.wrapping_add(shift);
        // That is where programs of the machine are. Nobody gets there unless told to.
        if moved == 0 && shift > 0 {
            return Ok(None);
        }
        match Mark::set(&format!("loopback-127.{moved}")) {
            Ok(mark) => marks.push(mark),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(marks))
}
