//! rmcp, the Rust SDK, as a client: `rmcp-peer ADDRESS REVISION OLDEST SOCKET` uses every feature once and prints what it got.

#![expect(deprecated, reason = "what the newest revision no longer has is what older ones are tried for")]

mod client;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, revision, oldest, socket] = &words[..] else { panic!("four words are needed: {words:?}") };
    println!("{}", client::use_all(address, revision, oldest, socket).await);
}
