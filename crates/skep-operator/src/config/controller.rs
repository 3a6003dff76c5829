//! The controller of every config kind: judge the spec, say who uses the object, and keep it while it is used.

use std::sync::Arc;
use std::time::Duration;

use skep_api::conditions::{self, ConditionStatus, types};
use skep_api::names::events;
use skep_control::Next;

use super::status::{blocked, judged, released};
use super::users::Users;
use super::{Complaint, ConfigKind};
use crate::cluster::Cluster;
use crate::controller::Reconcile;
use crate::events::{Note, Recorder};
use crate::failure::Failure;
use crate::write::{Writer, has_finalizer};

/// How often a blocked deletion is looked at again, should a watch have missed that the last user went.
const BLOCKED_RECHECK: Duration = Duration::from_secs(30);

/// The controller of a config kind.
#[derive(Debug)]
pub struct ConfigController<K> {
    cluster: Arc<Cluster>,
    recorder: Recorder,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: ConfigKind> ConfigController<K> {
    pub fn new(cluster: Arc<Cluster>, recorder: Recorder) -> Self {
        Self { cluster, recorder, kind: std::marker::PhantomData }
    }

    async fn finalize(&self, object: &K, writer: &Writer<K>) -> Result<Next, Failure> {
        if !has_finalizer(object, K::FINALIZER) {
            return Ok(Next::Rest);
        }
        let mut users = Users::known(&self.cluster, object);
        if users.is_empty() {
            // The watches may lag behind. What is let go here is gone for good, so ask the server itself.
            users = Users::live(&self.cluster, object).await?;
        }
        if users.is_empty() {
            // A write wakes this controller again, with the object as it is then.
            if !writer.status(object, &released(object)).await? {
                writer.remove_finalizer(object, K::FINALIZER).await?;
            }
            return Ok(Next::Rest);
        }
        let list = users.to_string();
        let was = object.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let was_blocked = conditions::is_true(was, types::DELETION_BLOCKED);
        writer.status(object, &blocked(object, users)).await?;
        if !was_blocked {
            let note = format!("deletion blocked while still referenced by workloads: {list}");
            let (reason, action) = (events::reasons::DELETION_BLOCKED, events::actions::DELETE);
            self.recorder.record(object, Note::warning(reason, action, note));
        }
        Ok(Next::After(BLOCKED_RECHECK))
    }

    /// Tells of a verdict that differs from the one before. A spec that was valid from the start is no news.
    fn tell(&self, object: &K, was: Option<ConditionStatus>, verdict: &Result<(), Complaint>) {
        let action = events::actions::VALIDATE;
        let note = match (verdict, was) {
            (Err(complaint), was) if was != Some(ConditionStatus::False) => {
                let note = format!("spec validation failed: {complaint}");
                Note::warning(events::reasons::CONFIG_INVALID, action, note)
            }
            (Ok(()), Some(ConditionStatus::False)) => {
                Note::normal(events::reasons::CONFIG_VALID, action, "spec validation passed".to_owned())
            }
            _ => return,
        };
        self.recorder.record(object, note);
    }
}

impl<K: ConfigKind> Reconcile for ConfigController<K> {
    type Kind = K;
    const VERDICT: &'static str = types::VALID;

    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    async fn reconcile(&self, object: &K, writer: &Writer<K>) -> Result<Next, Failure> {
        if object.meta().deletion_timestamp.is_some() {
            return self.finalize(object, writer).await;
        }
        if !has_finalizer(object, K::FINALIZER) {
            // The write wakes this controller again, with the object as it is then.
            writer.add_finalizer(object, K::FINALIZER).await?;
            return Ok(Next::Rest);
        }
        let before = object.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let was = conditions::find(before, types::VALID).map(|condition| condition.status);
        let verdict = object.validate();
        writer.status(object, &judged(object, &verdict, Users::known(&self.cluster, object))?).await?;
        self.tell(object, was, &verdict);
        Ok(Next::Rest)
    }
}
