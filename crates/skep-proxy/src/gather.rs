//! Bodies that are taken as a whole.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;

/// Why a body was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ungathered {
    #[error("the body has more bytes than it may have")]
    TooLarge,
    #[error("the body ended before its end")]
    Broken(#[from] hyper::Error),
}

/// All of a body, which may have so many bytes.
pub(crate) async fn gather(
    mut body: impl Body<Data = Bytes, Error = hyper::Error> + Unpin,
    largest: usize,
) -> Result<Bytes, Ungathered> {
    if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > largest {
        return Err(Ungathered::TooLarge);
    }
    // Most bodies are one piece, which needs no copy.
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    // Asking a body that has ended for more makes its connection wake itself, and a second thread with it.
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let Ok(data) = frame?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > largest {
            return Err(Ungathered::TooLarge);
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    Ok([first, rest.freeze()].concat().into())
}
