//! What `_meta` of a request says to those on its way.

use crate::json::{JsonError, Names, Scanner, Span};

/// The members of `_meta` that the protocol itself uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaKey {
    /// What progress is reported under.
    ProgressToken,
    /// The revision of a request that stands alone.
    ProtocolVersion,
    /// What the client can do.
    ClientCapabilities,
    /// Who the client is.
    ClientInfo,
    /// From which level on the client wants log messages.
    LogLevel,
    /// The listener that a notification is for.
    SubscriptionId,
    /// The step of a trace that the message belongs to.
    TraceParent,
    /// What those who trace it have to say to each other.
    TraceState,
}

impl MetaKey {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ProgressToken,
        Self::ProtocolVersion,
        Self::ClientCapabilities,
        Self::ClientInfo,
        Self::LogLevel,
        Self::SubscriptionId,
        Self::TraceParent,
        Self::TraceState,
    ];

    /// Those that are said between two neighbours, where requests stand alone. In a session nobody says them.
    pub const BETWEEN_NEIGHBOURS: [Self; 5] =
        [Self::ProtocolVersion, Self::ClientCapabilities, Self::ClientInfo, Self::LogLevel, Self::SubscriptionId];

    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProgressToken => "progressToken",
            Self::ProtocolVersion => "io.modelcontextprotocol/protocolVersion",
            Self::ClientCapabilities => "io.modelcontextprotocol/clientCapabilities",
            Self::ClientInfo => "io.modelcontextprotocol/clientInfo",
            Self::LogLevel => "io.modelcontextprotocol/logLevel",
            Self::SubscriptionId => "io.modelcontextprotocol/subscriptionId",
            Self::TraceParent => "traceparent",
            Self::TraceState => "tracestate",
        }
    }
}

/// Where those members are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meta([Option<Span>; MetaKey::ALL.len()]);

impl Meta {
    pub(crate) fn read(scanner: &mut Scanner<'_>) -> Result<Self, JsonError> {
        let mut meta = Self::default();
        let mut names = Names::default();
        scanner.object(|scanner, name| {
            let name = names.add(scanner, name)?;
            let value = scanner.value()?;
            if let Some(key) = MetaKey::ALL.into_iter().find(|key| key.name() == name) {
                meta.0[key as usize] = Some(value);
            }
            Ok(())
        })?;
        Ok(meta)
    }

    pub(crate) fn get(&self, key: MetaKey) -> Option<Span> {
        self.0[key as usize]
    }
}
