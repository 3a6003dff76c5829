//! Bodies that are taken as a whole.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;

use crate::budget::{Budget, Held, Spent};

/// Why a body was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ungathered {
    #[error("the body has more bytes than it may have")]
    TooLarge,
    #[error("so many bytes are held that there is no room for the body")]
    NoRoom,
    #[error("the body ended before its end")]
    Broken(#[from] hyper::Error),
}

impl From<Spent> for Ungathered {
    fn from(Spent: Spent) -> Self {
        Self::NoRoom
    }
}

/// All of a body, which may have so many bytes, and has its part of a budget for as long as it is kept.
pub(crate) async fn gather(
    mut body: impl Body<Data = Bytes, Error = hyper::Error> + Unpin,
    largest: usize,
    budget: &Budget,
) -> Result<Bytes, Ungathered> {
    if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > largest {
        return Err(Ungathered::TooLarge);
    }
    // Most bodies are one piece, which needs no copy.
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut held = Held::default();
    // Asking a body that has ended for more makes its connection wake itself, and a second thread with it.
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let Ok(data) = frame?.into_data() else { continue };
        let bytes = first.len() + all.len() + data.len();
        if bytes > largest {
            return Err(Ungathered::TooLarge);
        }
        budget.grow(&mut held, bytes)?;
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(held.with(if all.is_empty() { first } else { all.freeze() }))
}
