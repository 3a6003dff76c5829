//! Which of several replicas works.

use kube::Client;
use kube_lease_manager::{LeaseManagerBuilder, LeaseManagerError};
use skep_api::names::operator;
use tokio::sync::watch;

/// How long a leader that is not heard of stays one, in seconds.
const DURATION: u64 = 15;
/// How long before that it renews, in seconds.
const GRACE: u64 = 5;

/// Whether this process leads. Dropping it gives the lease back.
pub type Leads = watch::Receiver<bool>;

/// Stands for election in a namespace.
pub async fn stand(client: Client, namespace: &str, identity: &str) -> Result<Leads, LeaseManagerError> {
    let builder = LeaseManagerBuilder::new(client, operator::LEADER_ELECTION_ID);
    let manager = builder
        .with_namespace(namespace)
        .with_identity(identity)
        .with_duration(DURATION)
        .with_grace(GRACE)
        .build()
        .await?;
    let (leads, _) = manager.watch().await;
    Ok(leads)
}
