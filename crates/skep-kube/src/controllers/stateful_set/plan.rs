//! Which pods of a StatefulSet to create, delete or repair next.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use super::super::pods;
use super::identity::{new_pod, ordinal, repaired, revision_of, wanted_ordinals};
use super::revisions::Revisions;

#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub(super) set: &'a StatefulSet,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) revisions: &'a Revisions,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Create(Box<Pod>),
    Delete(Arc<Pod>),
    Update(Box<Pod>),
}

pub(super) fn plan(observed: &Observed<'_>, now: Timestamp) -> Vec<Step> {
    let Some(spec) = &observed.set.spec else { return Vec::new() };
    let set = Set::new(observed, spec, now);
    let mut steps = Vec::new();
    let settled = set.fill(&mut steps) && set.shrink(&mut steps);
    if settled && (steps.is_empty() || !set.ordered) {
        set.update(&mut steps);
    }
    steps
}

struct Set<'a> {
    observed: &'a Observed<'a>,
    spec: &'a StatefulSetSpec,
    by_ordinal: BTreeMap<i32, &'a Arc<Pod>>,
    /// One after the other (the default), or all at once (Parallel).
    ordered: bool,
    now: Timestamp,
}

impl<'a> Set<'a> {
    fn new(observed: &'a Observed<'a>, spec: &'a StatefulSetSpec, now: Timestamp) -> Self {
        let name = observed.set.metadata.name.as_deref().unwrap_or_default();
        let number = |pod: &Pod| ordinal(name, pod.metadata.name.as_deref().unwrap_or_default());
        let by_ordinal = observed.pods.iter().filter_map(|pod| Some((number(pod)?, pod))).collect();
        let ordered = spec.pod_management_policy.as_deref() != Some("Parallel");
        Self { observed, spec, by_ordinal, ordered, now }
    }

    fn is_healthy(&self, pod: &Pod) -> bool {
        let running = pods::phase(pod) == "Running" && !pods::is_terminating(pod);
        running && pods::is_available(pod, pods::seconds(self.spec.min_ready_seconds), self.now)
    }

    /// The first ordinal that gets the new template.
    fn partition(&self) -> i32 {
        let strategy = self.spec.update_strategy.as_ref();
        let partition = strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.partition).unwrap_or(0);
        wanted_ordinals(self.observed.set).start.saturating_add(partition.max(0))
    }

    fn is_rolling(&self) -> bool {
        let strategy = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        strategy != Some("OnDelete")
    }

    fn create(&self, ordinal: i32) -> Step {
        let Revisions { current, current_template, update, update_template } = self.observed.revisions;
        let (revision, template) = if self.is_rolling() && ordinal < self.partition() {
            (current, current_template)
        } else {
            (update, update_template)
        };
        Step::Create(Box::new(new_pod(self.observed.set, ordinal, revision, template)))
    }

    /// Every wanted ordinal has a healthy pod. Returns false when that has to be waited for.
    fn fill(&self, steps: &mut Vec<Step>) -> bool {
        for ordinal in wanted_ordinals(self.observed.set) {
            match self.by_ordinal.get(&ordinal) {
                None => steps.push(self.create(ordinal)),
                Some(pod) if pods::is_finished(pod) && !pods::is_terminating(pod) => {
                    steps.push(Step::Delete(Arc::clone(pod)));
                }
                Some(pod) if self.is_healthy(pod) || !self.ordered => {
                    if !pods::is_terminating(pod) {
                        steps.extend(repaired(ordinal, pod).map(|pod| Step::Update(Box::new(pod))));
                    }
                    continue;
                }
                Some(_) => return false,
            }
            if self.ordered {
                return false;
            }
        }
        true
    }

    /// Pods that are not wanted any more go, the highest ordinal first.
    fn shrink(&self, steps: &mut Vec<Step>) -> bool {
        let wanted = wanted_ordinals(self.observed.set);
        let condemned: Vec<_> = self.by_ordinal.iter().filter(|(ordinal, _)| !wanted.contains(ordinal)).collect();
        let first_unhealthy = condemned.iter().find(|(_, pod)| !self.is_healthy(pod)).map(|(ordinal, _)| **ordinal);
        for (ordinal, pod) in condemned.into_iter().rev() {
            let leaving = pods::is_terminating(pod);
            if !leaving && (!self.ordered || self.is_healthy(pod) || first_unhealthy == Some(*ordinal)) {
                steps.push(Step::Delete(Arc::clone(pod)));
            }
            if self.ordered {
                return false;
            }
        }
        true
    }

    /// Pods with another template than the new one go, the highest ordinal first, one at a time.
    fn update(&self, steps: &mut Vec<Step>) {
        if !self.is_rolling() {
            return;
        }
        let wanted = wanted_ordinals(self.observed.set);
        for ordinal in (self.partition()..wanted.end).rev() {
            let Some(pod) = self.by_ordinal.get(&ordinal) else { return };
            let outdated = revision_of(pod) != Some(self.observed.revisions.update.as_str());
            if outdated && !pods::is_terminating(pod) {
                steps.push(Step::Delete(Arc::clone(pod)));
                return;
            }
            if !self.is_healthy(pod) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
