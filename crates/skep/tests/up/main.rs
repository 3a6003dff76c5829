//! `skep up` from outside: manifests become processes that answer, heal, follow changes, and leave nothing behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../asking/mod.rs"]
mod asking;
#[path = "../collected/mod.rs"]
mod collected;
mod conformance;
mod crowd;
mod everything;
mod footprint;
#[path = "../demo/http.rs"]
#[expect(dead_code, reason = "the tests of the demo server need more of it")]
mod http;
mod kills;
mod kubectl;
#[path = "../layers/mod.rs"]
mod layers;
mod life;
mod lost;
mod machine;
mod mcp;
#[path = "../demo/npm.rs"]
#[expect(dead_code, reason = "the tests of the demo server need more of it")]
mod npm;
#[path = "../once/mod.rs"]
mod once;
#[path = "../outgoing/mod.rs"]
mod outgoing;
mod own_pods;
mod packages;
#[path = "../place/mod.rs"]
mod place;
mod plain;
mod pods;
mod policies;
#[path = "../prometheus/mod.rs"]
mod prometheus;
#[path = "../protected/mod.rs"]
mod protected;
#[path = "../provider/mod.rs"]
mod provider;
mod race;
#[path = "../telemetry/mod.rs"]
mod readers;
mod registries;
mod servers;
mod start;
#[path = "../suite/mod.rs"]
#[expect(dead_code, reason = "the tests of the demo server need more of it")]
mod suite;
mod telemetry;
