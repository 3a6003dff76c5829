//! The published revisions of the protocol.

/// A revision, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// `2024-11-05`: HTTP+SSE and stdio.
    November2024,
    /// `2025-03-26`: streamable HTTP, batches.
    March2025,
    /// `2025-06-18`: structured results and elicitation; no batches.
    June2025,
    /// `2025-11-25`: streams that the server may close and the client resumes.
    November2025,
    /// `2026-07-28`: no handshake and no sessions; every request carries what the server must know.
    July2026,
}

impl Revision {
    /// Newest first, as it is told to peers.
    pub const ALL: [Self; 5] =
        [Self::July2026, Self::November2025, Self::June2025, Self::March2025, Self::November2024];

    /// The newest revision that begins with a handshake.
    pub const NEWEST_WITH_HANDSHAKE: Self = Self::November2025;

    /// What a peer is taken to speak that has sessions and names no revision.
    pub const ASSUMED: Self = Self::March2025;

    /// Its name on the wire.
    pub fn text(self) -> &'static str {
        match self {
            Self::November2024 => "2024-11-05",
            Self::March2025 => "2025-03-26",
            Self::June2025 => "2025-06-18",
            Self::November2025 => "2025-11-25",
            Self::July2026 => "2026-07-28",
        }
    }

    /// The revision of that name. Some peers still use the name that the first one had before it was published.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "2024-10-07" => Some(Self::November2024),
            _ => Self::ALL.into_iter().find(|revision| revision.text() == text),
        }
    }

    /// What a server answers to a handshake that asks for this name: the same revision if it is one with a handshake,
    /// or else the newest one that is.
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested).filter(|revision| !revision.is_stateless()).unwrap_or(Self::NEWEST_WITH_HANDSHAKE)
    }

    /// Whether requests stand alone, without handshake and session.
    pub fn is_stateless(self) -> bool {
        self >= Self::July2026
    }

    /// Whether several messages may come as one.
    pub fn has_batches(self) -> bool {
        self == Self::March2025
    }

    /// Whether a stream begins with an event that has an id and no data, so that it can be resumed from the start.
    pub fn has_priming_events(self) -> bool {
        self == Self::November2025
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_never_ends_in_a_revision_without_one() {
        assert_eq!(Revision::negotiate("2025-03-26"), Revision::March2025);
        assert_eq!(Revision::negotiate("2024-10-07"), Revision::November2024);
        assert_eq!(Revision::negotiate("2026-07-28"), Revision::November2025);
        assert_eq!(Revision::negotiate("1999-01-01"), Revision::November2025);
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.text()), Some(revision));
        }
    }
}
