//! Chains that others have taken the place of. Requests that are under way end in the one that they began in; what is still to
//! be told about them is told when the last of them has ended, or when the proxy stops.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Chain;

/// How often it is looked whether somebody still uses a chain.
const LOOK: Duration = Duration::from_millis(200);

/// The chains that come to an end.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    ending: Mutex<JoinSet<()>>,
    /// Cancelled when no request is under way any more.
    closing: CancellationToken,
}

impl Replaced {
    /// Ends a chain, apart from everything else. Without a runtime there is nothing that goes on in it.
    pub(super) fn end(&self, chain: Arc<Chain>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut ending = self.ending.lock();
        while ending.try_join_next().is_some() {}
        ending.spawn_on(end(chain, self.closing.clone()), &runtime);
    }

    /// Waits until all of them have come to an end. Requests have to have ended before.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        let mut ending = std::mem::take(&mut *self.ending.lock());
        while ending.join_next().await.is_some() {}
    }
}

async fn end(chain: Arc<Chain>, closing: CancellationToken) {
    while Arc::strong_count(&chain) > 1 || chain.has_more_to_tell() {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = closing.cancelled() => break,
        }
    }
    chain.close().await;
    // Whoever gives up a place for records may have to wait for it, which is nothing for those who serve requests.
    let _ = tokio::task::spawn_blocking(move || drop(chain)).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::super::{Audit, AuditSettings, Middleware, Step};
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn recording(folder: &tempfile::TempDir) -> Chain {
        let file = Some(folder.path().join("audit.log"));
        Chain::new(vec![Step::Audit(Audit::new(AuditSettings { file, ..AuditSettings::default() }).unwrap())])
    }

    async fn gone(chain: &Weak<Chain>) {
        let gone = async {
            while chain.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_chain_lasts_as_long_as_the_last_request_in_it_and_not_longer() {
        let folder = tempfile::tempdir().unwrap();
        let middleware = Middleware::new(recording(&folder));
        let under_way = middleware.chain();
        let (chain, stream) = (Arc::downgrade(&under_way), under_way.audits[0].clone());
        middleware.replace(Chain::new(Vec::new()));
        drop(under_way);
        tokio::time::sleep(2 * LOOK).await;
        assert_eq!(chain.strong_count(), 1, "what a stream says at its end is still to be recorded");
        drop(stream);
        gone(&chain).await;
    }

    #[tokio::test]
    async fn all_chains_come_to_an_end_with_the_proxy() {
        let folder = tempfile::tempdir().unwrap();
        let middleware = Middleware::new(recording(&folder));
        let stream = middleware.chain().audits[0].clone();
        let mut chains = Vec::new();
        for _ in 0..3 {
            chains.push(Arc::downgrade(&middleware.chain()));
            middleware.replace(recording(&folder));
        }
        tokio::time::timeout(PATIENCE, middleware.close()).await.unwrap();
        assert!(chains.iter().all(|chain| chain.strong_count() == 0));
        drop(stream);
    }
}
