//! rmcp, the Rust SDK: `rmcp-peer URL REVISION FOLDER` is a client that uses every feature once and prints what it got;
//! `rmcp-peer http` is a server that prints its port; `rmcp-peer stdio` is one on lines.

#![expect(deprecated, reason = "what the newest revision no longer has is what older ones are tried for")]

mod client;
mod server;
mod words;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stdio"] => server::on_lines().await,
        ["http"] => server::on_http().await,
        [url, revision, folder] => println!("{}", client::use_all(url, revision, folder).await),
        _ => panic!("stdio, http, or three words are needed: {words:?}"),
    }
}
