//! The loop of a kind's controller: what it reconciles, what it may write, and what becomes of objects it cannot read.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use skep_api::conditions::{Name, Statement, reasons};
use skep_api::names::events::actions;
use skep_control::{Key, Next, Observer, Queue, work};

use crate::cluster::{Cluster, OwnKind, Seen};
use crate::events::{Note, Recorder};
use crate::failure::Failure;
use crate::write::Writer;

/// How soon an object in a namespace that is on its way out is looked at again.
const TOO_LATE: Duration = Duration::from_secs(30);

/// Brings the objects of one kind to their desired state, again and again, whatever woke it.
pub trait Reconcile: Send + Sync + 'static {
    type Kind: OwnKind;

    /// The condition that tells whether all is well.
    const VERDICT: &'static str;

    /// What `status.phase` says of an object that cannot be read, of a kind that has one.
    const FAILED: Option<&'static str> = None;

    /// Who tells events about the kind.
    fn recorder(&self) -> &Recorder;

    /// Forgets what it knows of an object that is gone.
    fn forget(&self, _key: &Key) {}

    /// One pass. What only a person can heal is written into the object's status and is a success.
    fn reconcile(
        &self,
        object: &Self::Kind,
        writer: &Writer<Self::Kind>,
    ) -> impl Future<Output = Result<Next, Failure>> + Send;

    /// One pass over an object that is to be deleted and has no spec that can be read: `object` has none.
    fn release(
        &self,
        object: &Self::Kind,
        writer: &Writer<Self::Kind>,
    ) -> impl Future<Output = Result<Next, Failure>> + Send {
        self.reconcile(object, writer)
    }
}

/// That one may write objects of kind `K`. Nobody outside of this module can make one.
#[derive(Debug)]
pub(crate) struct Mandate<K>(PhantomData<fn() -> K>);

/// How many objects of a kind are worked on at a time.
#[derive(Clone, Copy, Debug)]
pub struct Concurrency(pub usize);

/// Works for ever. This is the only place where a [`Writer`] comes into being.
pub async fn run<R: Reconcile>(
    reconciler: &R,
    cluster: &Arc<Cluster>,
    queue: &Queue<Key>,
    Concurrency(concurrency): Concurrency,
    observer: &impl Observer,
) {
    let cache = R::Kind::cache(cluster);
    let writer = Writer::new(Mandate(PhantomData), cluster.client.clone(), cache.clone());
    let name = <R::Kind as skep_api::kind::Kind>::DEFINITION.kind;
    let pass = async |key: Key| {
        let Some(seen) = cache.get(&key) else {
            reconciler.forget(&key);
            return Ok(Next::Rest);
        };
        match seen.as_ref() {
            Seen::Read(object) => reconciler.reconcile(object, &writer).await,
            // Nothing of the spec is needed to let an object go.
            Seen::Unreadable(object) if object.metadata.deletion_timestamp.is_some() => {
                reconciler.release(&object.without_spec()?, &writer).await
            }
            Seen::Unreadable(object) => {
                let message = format!(
                    "{name} {key} cannot be read: {}; correct that, or upgrade Skep if a newer version wrote it",
                    object.cause
                );
                let verdict = Statement::fails(R::VERDICT, Name::Borrowed(reasons::INVALID_SPEC), message.as_str());
                let is_news = match writer.unreadable(object, verdict, R::FAILED).await {
                    Ok(is_news) => is_news,
                    // Some objects are so wrong that the API server takes no status for them.
                    Err(failure) if failure.is_final() => true,
                    Err(failure) => return Err(failure),
                };
                if is_news {
                    let note = Note::warning(reasons::INVALID_SPEC, actions::VALIDATE_SPEC, message);
                    reconciler.recorder().record(seen.as_ref(), note);
                }
                Ok(Next::Rest)
            }
        }
    };
    let pass = async |key: Key| match pass(key).await {
        // The object goes soon, and is looked at then.
        Err(failure) if failure.is_too_late() => Ok(Next::After(TOO_LATE)),
        outcome => outcome,
    };
    work(name, queue, concurrency, observer, pass).await;
}

impl fmt::Display for Concurrency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
