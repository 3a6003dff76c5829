//! Servers that hang.

use super::*;
use crate::limits::Limits;
use crate::transparent::{Dialect, Target};

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_take_what_it_is_told_is_not_waited_for_without_end() {
    // The kernel takes connections for it, and nobody ever looks at them.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (target, limits) = (Target::local(Dialect::Streamable, &address).unwrap(), Limits::default());
    let upstream = Upstream::new(&target, &limits).unwrap();
    let uri = format!("{address}/mcp").parse().unwrap();
    let line = HttpLine::modern(upstream, uri, HeaderMap::new(), limits.answers(), Arc::default(), Arc::default());
    let line = line.legacy();
    let begun = tokio::time::Instant::now();
    assert!(!line.tell(Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#)).await);
    assert!(begun.elapsed() <= TELLING + Duration::from_secs(1), "{:?}", begun.elapsed());
}
