//! Which of several replicas works: the one that holds a Lease.
//!
//! The holder renews the lease again and again, and leads only while a renewal that succeeded is younger than [`RENEWAL`].
//! Others wait until they have seen no renewal for as long as the lease says, which is longer, and by their own clock. So
//! one has stopped before another begins, whatever fails and however clocks differ.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};
use skep_api::names::{field_managers, operator};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a holder that is not heard of keeps the lease, in seconds.
const LEASE: i32 = 15;
/// How long a holder leads after a renewal. What is left of the lease is for requests that are still under way.
const RENEWAL: Duration = Duration::from_secs(10);
/// How often the lease is looked at.
const RETRY: Duration = Duration::from_secs(2);
/// How long giving the lease back may take.
const RESIGNATION: Duration = Duration::from_secs(3);

/// A replica that stands for election until it is dropped. One that is dropped without having resigned keeps the lease,
/// as one that was killed does.
#[derive(Debug)]
pub struct Candidate {
    leads: watch::Receiver<bool>,
    resign: Option<oneshot::Sender<()>>,
    campaign: JoinHandle<()>,
}

impl Candidate {
    /// Stands for election in a namespace. Whoever cannot even look at the lease does not.
    pub async fn stand(client: Client, namespace: &str, identity: &str) -> Result<Self, kube::Error> {
        let mut seat = Seat { api: Api::namespaced(client, namespace), identity: identity.to_owned(), seen: None };
        let began = Instant::now();
        let renewed = seat.claim().await?.then_some(began);
        let (leading, leads) = watch::channel(renewed.is_some());
        let (resign, resigned) = oneshot::channel();
        let campaign = tokio::spawn(async move {
            tokio::select! {
                () = seat.hold(renewed, &leading) => {}
                Ok(()) = resigned => {
                    if let Err(error) = seat.vacate().await {
                        tracing::warn!(%error, "lease not given back");
                    }
                }
            }
        });
        Ok(Self { leads, resign: Some(resign), campaign })
    }

    /// Waits until this replica leads.
    pub async fn elected(&mut self) {
        self.until(true).await;
    }

    /// Waits until this replica leads no longer. It must not write from then on.
    pub async fn deposed(&mut self) {
        self.until(false).await;
    }

    /// Gives the lease back, so that another replica need not wait for its end.
    pub async fn resign(mut self) {
        if let Some(resign) = self.resign.take() {
            let _ = resign.send(());
        }
        let _ = timeout(RESIGNATION, &mut self.campaign).await;
    }

    async fn until(&mut self, wanted: bool) {
        // The campaign lasts as long as this does, so that the channel cannot close.
        let _ = self.leads.wait_for(|leads| *leads == wanted).await;
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        self.campaign.abort();
    }
}

/// The lease, as one candidate sees it.
struct Seat {
    api: Api<Lease>,
    identity: String,
    /// The version of the lease that was seen last, and since when.
    seen: Option<(Option<String>, Instant)>,
}

impl Seat {
    /// Takes the lease when it is free, and renews it for ever.
    async fn hold(&mut self, mut renewed: Option<Instant>, leading: &watch::Sender<bool>) {
        loop {
            let next = Instant::now() + RETRY;
            tokio::time::sleep_until(renewed.map_or(next, |at| next.min(at + RENEWAL))).await;
            let began = Instant::now();
            // A claim that hangs must not outlast the renewal before it.
            match timeout_at(renewed.unwrap_or(began) + RENEWAL, self.claim()).await {
                Ok(Ok(true)) => renewed = Some(began),
                Ok(Ok(false)) => renewed = None,
                Ok(Err(error)) => tracing::warn!(%error, "lease not renewed"),
                Err(_) => tracing::warn!("lease not renewed: the API server does not answer"),
            }
            renewed = renewed.filter(|at| at.elapsed() < RENEWAL);
            leading.send_if_modified(|leads| std::mem::replace(leads, renewed.is_some()) != renewed.is_some());
        }
    }

    /// Takes or renews the lease unless another holds it, and says whether it is held by this candidate now.
    async fn claim(&mut self) -> Result<bool, kube::Error> {
        let params = PostParams { field_manager: Some(field_managers::OPERATOR.to_owned()), ..PostParams::default() };
        let Some(mut lease) = self.api.get_opt(operator::LEADER_ELECTION_ID).await? else {
            let metadata = ObjectMeta { name: Some(operator::LEADER_ELECTION_ID.to_owned()), ..ObjectMeta::default() };
            let mut lease = Lease { metadata, spec: None };
            self.sign(lease.spec.get_or_insert_default());
            return won(self.api.create(&params, &lease).await);
        };
        let version = lease.resource_version();
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != version) {
            self.seen = Some((version, Instant::now()));
        }
        let spec = lease.spec.get_or_insert_default();
        if self.is_anothers(spec) {
            return Ok(false);
        }
        let was_held = spec.holder_identity.as_deref() == Some(self.identity.as_str());
        self.sign(spec);
        let answer = self.api.replace(operator::LEADER_ELECTION_ID, &params, &lease).await;
        // A holder is not deposed by somebody who writes a label: it looks again.
        if was_held { answer.map(|_| true) } else { won(answer) }
    }

    /// Whether somebody else holds the lease and may still be at work.
    fn is_anothers(&self, spec: &LeaseSpec) -> bool {
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let term = Duration::from_secs(spec.lease_duration_seconds.unwrap_or(LEASE).unsigned_abs().into());
        let is_heard_of = self.seen.as_ref().is_some_and(|(_, since)| since.elapsed() < term);
        !holder.is_empty() && holder != self.identity && is_heard_of
    }

    fn sign(&self, spec: &mut LeaseSpec) {
        let now = MicroTime(Timestamp::now());
        if spec.holder_identity.as_deref() != Some(self.identity.as_str()) {
            spec.holder_identity = Some(self.identity.clone());
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |before| before.saturating_add(1)));
        }
        spec.renew_time = Some(now);
        spec.lease_duration_seconds = Some(LEASE);
    }

    /// Gives the lease back if it is held. A renewal may still be under way, so that the first try may come too early.
    async fn vacate(&mut self) -> Result<(), kube::Error> {
        loop {
            let Some(mut lease) = self.api.get_opt(operator::LEADER_ELECTION_ID).await? else { return Ok(()) };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(self.identity.as_str()) {
                return Ok(());
            }
            spec.holder_identity = None;
            spec.renew_time = Some(MicroTime(Timestamp::now()));
            match self.api.replace(operator::LEADER_ELECTION_ID, &PostParams::default(), &lease).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                answer => return answer.map(drop),
            }
        }
    }
}

/// Of two that want the same lease the server refuses one.
fn won(answer: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}
