//! Headers that are not for anybody to set. Their names are in lower case.

/// Headers that say how a message travels, or where it comes from. The proxy decides on them.
pub const OF_THE_WAY: [&str; 17] = [
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-connection",
    "transfer-encoding",
    "content-length",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Headers that say what a message is, and in which session. No credential can be there.
pub const OF_MESSAGES: [&str; 9] = [
    "accept",
    "content-encoding",
    "content-type",
    "expect",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];
