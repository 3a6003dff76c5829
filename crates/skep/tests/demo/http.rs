//! HTTP by hand: a request is what the test wrote, and a response is read as it comes.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Far more than an answer takes, for machines that are busy.
const LIMIT: Duration = Duration::from_mins(2);

/// A request on a connection of its own.
pub(crate) struct Request {
    method: &'static str,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Request {
    pub(crate) fn new(method: &'static str, target: &str) -> Self {
        Self { method, target: target.to_owned(), headers: Vec::new(), body: String::new() }
    }

    /// A message to the endpoint of streamable HTTP.
    pub(crate) fn post(message: &Value) -> Self {
        Self::new("POST", "/mcp")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(&message.to_string())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces a header.
    pub(crate) fn instead(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.header(name, value)
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    pub(crate) fn send(&self, address: &str) -> Response {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let host = ("Host".to_owned(), address.to_owned());
        let is_named = self.headers.iter().any(|(name, _)| name == "Host");
        let headers = self.headers.iter().chain((!is_named).then_some(&host));
        let headers: String = headers.flat_map(|(name, value)| [name.as_str(), ": ", value, "\r\n"]).collect();
        let (method, target, length) = (self.method, &self.target, self.body.len());
        let head =
            format!("{method} {target} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses by the headers may close before it has read everything.
        let _ = stream.write_all(self.body.as_bytes());
        Response::read(BufReader::new(stream))
    }
}

/// A response whose body may still be under way.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: BufReader<Body>,
}

impl Response {
    fn read(mut stream: BufReader<TcpStream>) -> Self {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            line.clear();
            stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = BufReader::new(Body { stream, left: if is_chunked { Left::Chunk(0) } else { Left::All } });
        Self { status, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    pub(crate) fn text(&mut self) -> String {
        let mut text = String::new();
        self.body.read_to_string(&mut text).unwrap();
        text
    }

    pub(crate) fn json(&mut self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    /// The next event, or nothing when the stream has ended.
    pub(crate) fn event(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end_matches('\n').split_once(':') {
                Some(("id", value)) => event.id = Some(value.trim().to_owned()),
                Some(("event", value)) => value.trim().clone_into(&mut event.name),
                Some(("retry", value)) => event.retry = value.trim().parse().ok(),
                Some(("data", value)) => event.data = Some(value.trim().to_owned()),
                None if event.data.is_some() => return Some(event),
                // A comment, or the end of one.
                Some(_) | None => {}
            }
        }
    }

    /// The next event that is a message.
    pub(crate) fn message(&mut self) -> Option<Value> {
        loop {
            let data = self.event()?.data.unwrap_or_default();
            if !data.is_empty() {
                return Some(serde_json::from_str(&data).unwrap());
            }
        }
    }
}

/// A server-sent event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) retry: Option<u64>,
    pub(crate) data: Option<String>,
}

struct Body {
    stream: BufReader<TcpStream>,
    left: Left,
}

enum Left {
    /// Until the connection is closed.
    All,
    /// So many bytes of this chunk, and the chunks after it.
    Chunk(usize),
    Nothing,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.left {
            Left::All => self.stream.read(buffer),
            Left::Nothing => Ok(0),
            Left::Chunk(0) => {
                let mut line = String::new();
                while line.trim().is_empty() {
                    line.clear();
                    if self.stream.read_line(&mut line)? == 0 {
                        return Err(std::io::ErrorKind::UnexpectedEof.into());
                    }
                }
                let size = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
                self.left = if size == 0 { Left::Nothing } else { Left::Chunk(size) };
                self.read(buffer)
            }
            Left::Chunk(size) => {
                let wanted = buffer.len().min(size);
                let read = self.stream.read(&mut buffer[..wanted])?;
                self.left = Left::Chunk(size - read);
                Ok(read)
            }
        }
    }
}
