//! An MCP server on standard input and output.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _, stdin, stdout};

use serde_json::{Value, json};

use super::server::result_of;

/// Answers until there is nothing more to read.
pub(super) fn run() -> anyhow::Result<()> {
    let mut input = BufReader::new(stdin().lock());
    let mut output = BufWriter::new(stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let message: Value = serde_json::from_str(&line)?;
        line.clear();
        if let Some(id) = message.get("id") {
            writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result_of(&message)}))?;
        }
        // What waits to be read is answered first.
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}
