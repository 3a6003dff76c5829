//! The published revisions of the protocol, and what each of them can say.

/// A revision, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Revision {
    /// `2024-11-05`: HTTP+SSE and stdio.
    November2024,
    /// `2025-03-26`: streamable HTTP, batches, audio.
    March2025,
    /// `2025-06-18`: structured results, links to resources, elicitation; no batches.
    June2025,
    /// `2025-11-25`: streams that the server may close and the client resumes.
    November2025,
    /// `2026-07-28`: no handshake and no sessions; every request carries what the server must know.
    July2026,
}

/// The revisions that a server speaks: all, or one as if there were no other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spoken(Option<Revision>);

impl Spoken {
    /// Only the revision of that name, or all if there is none.
    pub fn only(name: Option<&str>) -> Self {
        Self(name.and_then(Revision::parse))
    }

    pub(crate) fn has(self, revision: Revision) -> bool {
        self.0.is_none_or(|only| only == revision)
    }

    /// Newest first, as it is told to clients.
    pub(crate) fn names(self) -> Vec<&'static str> {
        Revision::ALL.into_iter().filter(|revision| self.has(*revision)).map(Revision::text).collect()
    }

    /// What a handshake ends in that asks for something else, if there are handshakes.
    pub(crate) fn newest_with_handshake(self) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| !revision.is_stateless() && self.has(*revision))
    }
}

impl Revision {
    /// Newest first, as it is told to clients.
    pub(crate) const ALL: [Self; 5] =
        [Self::July2026, Self::November2025, Self::June2025, Self::March2025, Self::November2024];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::November2024 => "2024-11-05",
            Self::March2025 => "2025-03-26",
            Self::June2025 => "2025-06-18",
            Self::November2025 => "2025-11-25",
            Self::July2026 => "2026-07-28",
        }
    }

    /// The revision of that name. Some clients still use the name that the first one had before it was published.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "2024-10-07" => Some(Self::November2024),
            _ => Self::ALL.into_iter().find(|revision| revision.text() == text),
        }
    }

    /// Whether requests stand alone, without handshake and session.
    pub(crate) fn is_stateless(self) -> bool {
        self >= Self::July2026
    }

    pub(crate) fn has_batches(self) -> bool {
        self == Self::March2025
    }

    pub(crate) fn has_audio(self) -> bool {
        self >= Self::March2025
    }

    /// Structured results, links to resources and elicitation came together.
    pub(crate) fn has_structured_results(self) -> bool {
        self >= Self::June2025
    }

    pub(crate) fn has_elicitation(self) -> bool {
        self >= Self::June2025
    }

    /// Whether the server may close a stream before its answer, for the client to come back.
    pub(crate) fn has_polling(self) -> bool {
        self == Self::November2025
    }
}
