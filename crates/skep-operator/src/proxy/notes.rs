//! Events about a workload, each told once: when a condition turns.

use skep_api::conditions::{self, Condition, ConditionStatus, types};
use skep_api::kind::Kind;
use skep_api::names::events::{actions, reasons};

use crate::events::{Note, Recorder};

/// What a condition says when it has just turned false.
pub fn turned_false<'a>(before: &[Condition], after: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    let is_false = |found: &&Condition| found.status == ConditionStatus::False;
    let was = conditions::find(before, type_).filter(is_false);
    conditions::find(after, type_).filter(is_false).filter(|now| was.is_none_or(|was| was.reason != now.reason))
}

/// Tells that a pod template cannot be read.
pub fn pod_template<K: Kind>(recorder: &Recorder, object: &K, before: &[Condition], after: &[Condition]) {
    if let Some(condition) = turned_false(before, after, types::POD_TEMPLATE_VALID) {
        let note = condition.message.replace("until fixed", "until PodTemplateSpec is fixed");
        let (reason, action) = (reasons::INVALID_POD_TEMPLATE_SPEC, actions::VALIDATE_POD_TEMPLATE_SPEC);
        recorder.record(object, Note::warning(reason, action, note));
    }
}
