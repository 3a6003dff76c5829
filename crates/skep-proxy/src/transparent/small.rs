//! Small answers, which leave in one piece.

use http::Version;
use http::response::Parts;
use hyper::body::Body as _;
use skep_mcp::Message;

use crate::answer::{self, Answer};
use crate::body::Body;
use crate::budget::Budget;
use crate::eras::http::is_stream;
use crate::gather::gather;

/// Larger answers leave as they come.
const SMALL: usize = 16 << 10;

/// Waits for the end of an answer that is small and says so. Otherwise its head would leave before its body: with another
/// system call, in another packet, for which the client wakes another time. Events are passed on as they come.
pub(super) async fn in_one_piece(
    head: &Parts,
    body: Body,
    request: Option<&Message>,
    budget: &Budget,
) -> Result<Body, Answer> {
    let Body::FromServer(body) = body else { return Ok(body) };
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let is_small = length.is_some_and(|length| length <= SMALL) && !body.is_end_stream();
    // What comes by HTTP/2 may have trailers.
    if !is_small || head.version > Version::HTTP_11 || is_stream(&head.headers) {
        return Ok(Body::FromServer(body));
    }
    // The client has heard nothing yet, so that it can be told of an answer that breaks off.
    let whole = gather(body, SMALL, budget).await.map(Body::Full);
    whole.map_err(|_| answer::broken_off(request.and_then(Message::owned_id).as_ref()))
}
