//! rmcp, the Rust SDK, as a peer.
//!
//! `rmcp-peer client ADDRESS REVISION OLDEST SOCKET` uses every feature once and prints what it got.
//! `rmcp-peer server` speaks on standard input and output.

#![expect(deprecated, reason = "what the newest revision no longer has is what older ones are tried for")]

mod client;
mod server;

use serde::de::DeserializeOwned;
use serde_json::Value;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["client", address, revision, oldest, socket] => {
            println!("{}", client::use_all(address, revision, oldest, socket).await);
        }
        ["server"] => server::run().await,
        _ => panic!("unknown words: {words:?}"),
    }
}

/// A value of rmcp, from the words of the protocol.
fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A value of rmcp, in the words of the protocol.
fn words(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}
