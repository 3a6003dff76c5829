//! Frames: what is on the wire.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::headers::malformed;

const VERSION: u16 = 3;
const CONTROL: u32 = 1 << 31;
const FIN: u8 = 1;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const SETTINGS: u16 = 4;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const WINDOW_UPDATE: u16 = 9;

/// Longer control frames are refused.
const LONGEST_CONTROL: usize = 64 * 1024;
/// Data is passed on in pieces of this size, however large the frame is.
const PIECE: usize = 64 * 1024;

/// Why a stream is refused.
pub(super) const REFUSED: u32 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Open {
        stream: u32,
        headers: Bytes,
        last: bool,
    },
    Reply {
        stream: u32,
        headers: Bytes,
    },
    Headers {
        headers: Bytes,
    },
    Data {
        stream: u32,
        bytes: Bytes,
        last: bool,
    },
    Reset {
        stream: u32,
        status: u32,
    },
    Ping(u32),
    GoAway,
    /// Settings and windows, which do not matter here.
    Other,
}

/// Reads frames.
pub(super) struct Reader<R> {
    source: R,
    /// What is left of the data frame that is being read.
    data: Option<(u32, usize, bool)>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, data: None }
    }

    /// The next frame, or the next piece of one; none at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        if self.data.is_none() {
            let mut head = [0; 8];
            match self.source.read_exact(&mut head).await {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
            // A word, a byte of flags, and three bytes of length.
            let [word @ .., flags, _, _, _] = head;
            let word = u32::from_be_bytes(word);
            let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
            let last = flags & FIN != 0;
            if word & CONTROL != 0 {
                return self.control(word, last, length).await.map(Some);
            }
            self.data = Some((word, length, last));
        }
        let Some((stream, left, last)) = self.data.take() else { return Ok(None) };
        let bytes = self.take(left.min(PIECE)).await?;
        let left = left - bytes.len();
        if left > 0 {
            self.data = Some((stream, left, last));
        }
        Ok(Some(Frame::Data { stream, bytes, last: last && left == 0 }))
    }

    async fn control(&mut self, word: u32, last: bool, length: usize) -> io::Result<Frame> {
        let [high, low, ..] = (word & !CONTROL).to_be_bytes();
        if u16::from_be_bytes([high, low]) != VERSION {
            return Err(malformed("another version of SPDY"));
        }
        if length > LONGEST_CONTROL {
            return Err(malformed("control frame too long"));
        }
        let mut body = self.take(length).await?;
        let kind = u16::try_from(word & 0xffff).unwrap_or(0);
        Ok(match kind {
            SYN_STREAM => {
                let stream = number(&body, 0)?;
                cut(&mut body, 10).map(|headers| Frame::Open { stream, headers, last })?
            }
            SYN_REPLY => {
                let stream = number(&body, 0)?;
                cut(&mut body, 4).map(|headers| Frame::Reply { stream, headers })?
            }
            HEADERS => cut(&mut body, 4).map(|headers| Frame::Headers { headers })?,
            RST_STREAM => Frame::Reset { stream: number(&body, 0)?, status: number(&body, 4)? },
            PING => Frame::Ping(number(&body, 0)?),
            GOAWAY => Frame::GoAway,
            SETTINGS | WINDOW_UPDATE => Frame::Other,
            _ => return Err(malformed("unknown frame")),
        })
    }

    async fn take(&mut self, length: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.source.read_exact(&mut bytes).await?;
        Ok(bytes.into())
    }
}

fn number(body: &[u8], at: usize) -> io::Result<u32> {
    let bytes = body.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(|| malformed("frame cut short"))?;
    Ok(u32::from_be_bytes(*bytes) & !CONTROL)
}

fn cut(body: &mut Bytes, at: usize) -> io::Result<Bytes> {
    if body.len() < at { Err(malformed("frame cut short")) } else { Ok(body.split_off(at)) }
}

impl Frame {
    /// The frame as bytes.
    pub(super) fn write(&self) -> Vec<u8> {
        match self {
            Self::Open { stream, headers, last } => {
                control(SYN_STREAM, *last, &[&stream.to_be_bytes(), &[0; 6], headers])
            }
            Self::Reply { stream, headers } => control(SYN_REPLY, false, &[&stream.to_be_bytes(), headers]),
            Self::Headers { headers } => control(HEADERS, false, &[&[0; 4], headers]),
            Self::Data { stream, bytes, last } => {
                let mut frame = stream.to_be_bytes().to_vec();
                finish(&mut frame, *last, &[bytes]);
                frame
            }
            Self::Reset { stream, status } => {
                control(RST_STREAM, false, &[&stream.to_be_bytes(), &status.to_be_bytes()])
            }
            Self::Ping(id) => control(PING, false, &[&id.to_be_bytes()]),
            Self::GoAway => control(GOAWAY, false, &[&[0; 8]]),
            Self::Other => control(SETTINGS, false, &[&[0; 4]]),
        }
    }
}

fn control(kind: u16, last: bool, parts: &[&[u8]]) -> Vec<u8> {
    let mut frame = (CONTROL | u32::from(VERSION) << 16 | u32::from(kind)).to_be_bytes().to_vec();
    finish(&mut frame, last, parts);
    frame
}

fn finish(frame: &mut Vec<u8>, last: bool, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let [_, a, b, c] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    frame.extend_from_slice(&[if last { FIN } else { 0 }, a, b, c]);
    for part in parts {
        frame.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> io::Result<Vec<Frame>> {
        let mut reader = Reader::new(bytes);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await? {
            frames.push(frame);
        }
        Ok(frames)
    }

    #[tokio::test]
    async fn frames_are_read_back() {
        let headers = Bytes::from_static(b"headers");
        let frames = vec![
            Frame::Open { stream: 1, headers: headers.clone(), last: true },
            Frame::Reply { stream: 1, headers: headers.clone() },
            Frame::Headers { headers },
            Frame::Data { stream: 3, bytes: Bytes::from_static(b"abc"), last: false },
            Frame::Data { stream: 3, bytes: Bytes::new(), last: true },
            Frame::Reset { stream: 3, status: REFUSED },
            Frame::Ping(7),
            Frame::Other,
            Frame::GoAway,
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::write).collect();
        assert_eq!(read(&bytes).await.unwrap(), frames);
    }

    #[tokio::test]
    async fn a_ping_looks_as_the_specification_draws_it() {
        assert_eq!(Frame::Ping(1).write(), [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]);
        let data = Frame::Data { stream: 5, bytes: Bytes::from_static(b"x"), last: true };
        assert_eq!(data.write(), [0, 0, 0, 5, 1, 0, 0, 1, b'x']);
    }

    #[tokio::test]
    async fn large_data_comes_in_pieces_and_ends_with_the_last() {
        let data = Frame::Data { stream: 1, bytes: vec![7; 2 * PIECE + 1].into(), last: true };
        let pieces = read(&data.write()).await.unwrap();
        let ends: Vec<(usize, bool)> = pieces
            .iter()
            .map(|piece| match piece {
                Frame::Data { bytes, last, .. } => (bytes.len(), *last),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ends, [(PIECE, false), (PIECE, false), (1, true)]);
    }

    #[tokio::test]
    async fn nonsense_is_refused() {
        for bytes in [
            &[0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1][..],
            &[0x80, 3, 0, 99, 0, 0, 0, 0],
            &[0x80, 3, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1],
            &[0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff],
            &[0x80, 3, 0, 6, 0, 0, 0, 4, 0],
            &[0, 0, 0, 1, 0, 0, 0, 9, 1],
        ] {
            assert!(read(bytes).await.is_err(), "{bytes:?}");
        }
    }
}
