//! Answers that cannot be read, because they are too long or nest too deeply. Whoever waits for one is found by the id at its
//! beginning or at its end, which is where servers write it.

use skep_mcp::lines::Ends;

/// The number of the request that a line answers, if that is to be seen.
pub(super) fn number(ends: &Ends) -> Option<u64> {
    let begun = memchr::memchr(b'{', &ends.first).and_then(|start| at_beginning(&ends.first[start + 1..]));
    begun.or_else(|| at_end(&ends.last[..memchr::memrchr(b'}', &ends.last)?]))
}

/// The id among the first members of an object, before one that is an object itself.
fn at_beginning(mut text: &[u8]) -> Option<u64> {
    loop {
        let (name, rest) = string(text.trim_ascii_start())?;
        let value = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let end = match string(value) {
            Some((_, rest)) => value.len() - rest.len(),
            None => value.iter().position(|byte| !is_plain(*byte))?,
        };
        if name == b"id" {
            return digits(&value[..end]);
        }
        text = value[end..].trim_ascii_start().strip_prefix(b",")?;
    }
}

/// The id among the last members of an object, after one that is an object itself.
fn at_end(mut text: &[u8]) -> Option<u64> {
    loop {
        text = text.trim_ascii_end();
        let start = match string_before(text) {
            Some((_, before)) => before.len(),
            None => text.iter().rposition(|byte| !is_plain(*byte))? + 1,
        };
        let (before, value) = text.split_at(start);
        let (name, before) = string_before(before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end())?;
        if name == b"id" {
            return digits(value);
        }
        text = before.trim_ascii_end().strip_suffix(b",")?;
    }
}

/// The text that something begins with, and what follows it. One with a character that is written otherwise is none.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', text).filter(|end| text[*end] == b'"')?;
    Some((&text[..end], &text[end + 1..]))
}

/// The same of what something ends with.
fn string_before(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_suffix(b"\"")?;
    let start = memchr::memrchr2(b'"', b'\\', text).filter(|start| text[*start] == b'"')?;
    let before = &text[..start];
    // Otherwise it is within another text.
    (!before.ends_with(b"\\")).then_some((&text[start + 1..], before))
}

/// Whether a byte is of a number or a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// Ids are ours, and have digits only.
fn digits(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_where_servers_write_it() {
        let long = "x".repeat(5000);
        for (line, expected) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{long}"}}}}"#), Some(7)),
            (format!(r#" {{ "id" : 7 , "jsonrpc" : "2.0", "result" : {{"id":8,"text":"{long}"}} }} "#), Some(7)),
            (format!(r#"{{"result":{{"id":8,"text":"{long}"}},"jsonrpc":"2.0","id":7}}"#), Some(7)),
            (format!(r#"{{"result":{{"text":"{long}","id":8}},"id" : 7, "jsonrpc" : "2.0" }} "#), Some(7)),
            (format!(r#"INFO {{"jsonrpc":"2.0","id":7,"result":"{long}"}} done"#), Some(7)),
            (format!(r#"{{"jsonrpc":"2.0","id":"7","result":"{long}"}}"#), None),
            (format!(r#"{{"jsonrpc":"2.0","method":"a","params":{{"id":7,"text":"{long}","id":7}}}}"#), None),
            (format!(r#"{{"jsonrpc":"2.0","result":"{long}\",\"id\":7}}"#), None),
            (format!(r#"{{"jsonrpc":"2.0","result":["{long}",{{"id":7}}]}}"#), None),
            (format!(r#"{{"result":"{long},\"id\":7,\"jsonrpc\":\"2.0"}}"#), None),
            (long.clone(), None),
            ("[".repeat(5000), None),
            ("}{".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(number(&Ends::of(line.as_bytes())), expected, "{}", &line[..line.len().min(60)]);
        }
    }
}
