//! The controller of every config kind: judge the spec, say who uses the object, and keep it while it is used.

use std::sync::Arc;
use std::time::Duration;

use skep_api::conditions::{self, ConditionStatus, types};
use skep_api::names::events;
use skep_control::Next;

use super::status::{judged, released};
use super::users::Users;
use super::{ConfigKind, Verdict};
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

    /// Lets an object go that nobody uses. One that is used goes on as long: its deletion has changed its generation, and
    /// its users wait for a verdict on that one.
    async fn finalize(&self, object: &K, writer: &Writer<K>, verdict: Option<Verdict>) -> Result<Next, Failure> {
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
        self.judge(object, writer, verdict, users).await?;
        if !was_blocked {
            let note = format!("deletion blocked while still referenced by workloads: {list}");
            let (reason, action) = (events::reasons::DELETION_BLOCKED, events::actions::DELETE);
            self.recorder.record(object, Note::warning(reason, action, note));
        }
        Ok(Next::After(BLOCKED_RECHECK))
    }

    /// Says whether the spec is valid, where that is known, and who uses it.
    async fn judge(
        &self,
        object: &K,
        writer: &Writer<K>,
        verdict: Option<Verdict>,
        users: Users,
    ) -> Result<(), Failure> {
        let before = object.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let was = conditions::find(before, types::VALID).map(|condition| condition.status);
        writer.status(object, &judged(object, verdict.as_ref(), users)?).await?;
        if let Some(verdict) = verdict {
            self.tell(object, was, &verdict);
        }
        Ok(())
    }

    /// Tells of a verdict that differs from the one before. A spec that was valid from the start is no news.
    fn tell(&self, object: &K, was: Option<ConditionStatus>, verdict: &Verdict) {
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
            return self.finalize(object, writer, Some(object.validate())).await;
        }
        if !has_finalizer(object, K::FINALIZER) {
            // The write wakes this controller again, with the object as it is then.
            writer.add_finalizer(object, K::FINALIZER).await?;
            return Ok(Next::Rest);
        }
        self.judge(object, writer, Some(object.validate()), Users::known(&self.cluster, object)).await?;
        Ok(Next::Rest)
    }

    async fn release(&self, object: &K, writer: &Writer<K>) -> Result<Next, Failure> {
        self.finalize(object, writer, None).await
    }
}
