//! The shortest MCP client.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

const REVISION: &str = "2025-06-18";
const LIMIT: Duration = Duration::from_secs(5);

/// Calls the tool `echo`, from the first word of a client to the answer.
pub(super) fn call_echo(address: SocketAddr) -> anyhow::Result<()> {
    let client = json!({"name": "skep-bench", "version": "1"});
    let params = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
    let hello = post(address, "", &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))?;
    let mut lines = hello.lines();
    let session = lines.find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:")).context("no session")?;
    let headers = format!("{session}\r\nMCP-Protocol-Version: {REVISION}\r\n");
    let params = json!({"name": "echo", "arguments": {"message": "honey"}});
    let answer =
        post(address, &headers, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))?;
    ensure!(answer.contains("\"honey\""), "{answer}");
    Ok(())
}

/// The whole response as text.
fn post(address: SocketAddr, headers: &str, message: &Value) -> anyhow::Result<String> {
    let body = message.to_string();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let length = body.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    ensure!(text.starts_with("HTTP/1.1 200 "), "{text}");
    Ok(text)
}
