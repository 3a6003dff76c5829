//! Looks into an event.

use std::borrow::Cow;

/// What an event says. What a field means twice, it means as it was said last, except for data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its kind; a message when there is none.
    pub name: Option<&'a [u8]>,
    /// What it carries. Nothing and an empty text are different things.
    pub data: Option<Cow<'a, [u8]>>,
    /// What a client comes back with that lost the stream.
    pub id: Option<&'a [u8]>,
    /// How long such a client waits, in milliseconds.
    pub retry: Option<u64>,
}

impl<'a> Event<'a> {
    /// Reads an event from all of its lines. The mark that a text may begin with is no part of it.
    pub fn read(text: &'a [u8]) -> Self {
        let mut event = Self::default();
        for line in lines(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)) {
            let (field, value) = match memchr::memchr(b':', line) {
                Some(colon) => (&line[..colon], &line[colon + 1..]),
                None => (line, &[][..]),
            };
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match field {
                b"event" => event.name = Some(value),
                b"data" => event.add(value),
                b"id" if !value.contains(&0) => event.id = Some(value),
                b"retry" => event.retry = std::str::from_utf8(value).ok().and_then(digits).or(event.retry),
                // A comment, or a field that nobody knows.
                _ => {}
            }
        }
        event
    }

    /// Whether it is a message, as events without a name are.
    pub fn is_message(&self) -> bool {
        self.name.is_none_or(|name| name.is_empty() || name == b"message")
    }

    fn add(&mut self, line: &'a [u8]) {
        match &mut self.data {
            None => self.data = Some(Cow::Borrowed(line)),
            Some(data) => {
                let data = data.to_mut();
                data.push(b'\n');
                data.extend_from_slice(line);
            }
        }
    }
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The lines of an event, whichever way they end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = match after {
            [b'\r', b'\n', after @ ..] | [_, after @ ..] => after,
            [] => after,
        };
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_comments_are_not() {
        let event =
            Event::read(b"\n: hello\r\nevent: endpoint\rid:7\nretry: 1500\ndata: a\ndata:  b\ndata\nother: x\n\n");
        assert_eq!(event.name, Some(&b"endpoint"[..]));
        assert_eq!(event.data.as_deref(), Some(&b"a\n b\n"[..]));
        assert_eq!((event.id, event.retry), (Some(&b"7"[..]), Some(1500)));
        assert!(!event.is_message());
    }

    #[test]
    fn an_event_without_data_is_not_one_with_empty_data() {
        assert_eq!(Event::read(b": alive\n\n"), Event::default());
        assert_eq!(Event::read(b"id: 1\ndata:\n\n").data.as_deref(), Some(&b""[..]));
        assert_eq!(Event::read(b"retry: soon\nid: a\0b\n\n"), Event::default());
        assert_eq!(Event::read(b"\xef\xbb\xbfdata: 1\n\n").data.as_deref(), Some(&b"1"[..]));
    }
}
