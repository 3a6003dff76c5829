//! Writes events.

/// An event to be written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame<'a> {
    /// What a client comes back with that lost the stream.
    pub id: Option<&'a str>,
    /// How long such a client waits, in milliseconds.
    pub retry: Option<u64>,
    /// Its kind.
    pub name: Option<&'a str>,
    /// What it carries.
    pub data: &'a [u8],
}

impl Frame<'_> {
    /// The event as it is sent. Data of several lines is written as several lines.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.data.len() + 64);
        let mut field = |name: &str, value: &[u8]| {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value);
            text.push(b'\n');
        };
        if let Some(id) = self.id {
            field("id", id.as_bytes());
        }
        if let Some(retry) = self.retry {
            field("retry", retry.to_string().as_bytes());
        }
        if let Some(name) = self.name {
            field("event", name.as_bytes());
        }
        let mut rest = self.data;
        while let Some(end) = memchr::memchr2(b'\r', b'\n', rest) {
            field("data", &rest[..end]);
            let is_pair = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
            rest = &rest[end + if is_pair { 2 } else { 1 }..];
        }
        field("data", rest);
        text.push(b'\n');
        text
    }
}

/// A line that clients ignore, to show that the stream is alive.
pub fn comment(text: &str) -> Vec<u8> {
    format!(": {text}\n\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::Event;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for data in ["{}", "", "a\nb", "a\r\nb\r", "\u{a0}\u{200d}\u{fffd}"] {
            let text =
                Frame { id: Some("4-1"), retry: Some(500), name: Some("message"), data: data.as_bytes() }.encode();
            let event = Event::read(&text);
            let expected = data.replace("\r\n", "\n").replace('\r', "\n");
            assert_eq!(event.data.as_deref(), Some(expected.as_bytes()));
            assert_eq!((event.id, event.retry), (Some(&b"4-1"[..]), Some(500)));
            assert!(event.is_message() && text.ends_with(b"\n\n"));
        }
        assert_eq!(Frame { data: b"1", ..Frame::default() }.encode(), b"data: 1\n\n");
        assert_eq!(Event::read(&comment("alive")), Event::default());
    }
}
