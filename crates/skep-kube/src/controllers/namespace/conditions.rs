//! What a namespace says while it is being deleted.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// What is left of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remaining {
    /// Why the kinds of the server are not known.
    pub(super) discovery: Option<String>,
    /// By resource, as `plural.group`.
    pub(super) objects: BTreeMap<String, usize>,
    pub(super) finalizers: BTreeMap<String, usize>,
    pub(super) failures: Vec<String>,
}

impl Remaining {
    pub(super) fn is_nothing(&self) -> bool {
        self.discovery.is_none() && self.objects.is_empty() && self.failures.is_empty()
    }
}

/// The conditions after a pass, given the ones before it.
pub(super) fn conditions(
    known: &[NamespaceCondition],
    remaining: &Remaining,
    now: Timestamp,
) -> Vec<NamespaceCondition> {
    let counted = |counts: &BTreeMap<String, usize>, verb: &str| {
        let parts = counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances"));
        parts.collect::<Vec<_>>().join(", ")
    };
    let failures = (!remaining.failures.is_empty()).then(|| {
        format!(
            "Failed to delete all resource types, {} remaining: {}",
            remaining.failures.len(),
            remaining.failures.join(", ")
        )
    });
    let objects = (!remaining.objects.is_empty())
        .then(|| format!("Some resources are remaining: {}", counted(&remaining.objects, "has")));
    let finalizers = (!remaining.finalizers.is_empty()).then(|| {
        format!("Some content in the namespace has finalizers remaining: {}", counted(&remaining.finalizers, "in"))
    });
    let discovery = remaining.discovery.as_ref().map(|message| format!("Discovery failed for some groups: {message}"));
    let wanted = [
        (
            "NamespaceDeletionDiscoveryFailure",
            discovery.ok_or(("ResourcesDiscovered", "All resources successfully discovered")),
            "DiscoveryFailed",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            Err(("ParsedGroupVersions", "All legacy kube types successfully parsed")),
            "GroupVersionParsingFailed",
        ),
        (
            "NamespaceDeletionContentFailure",
            failures.ok_or(("ContentDeleted", "All content successfully deleted, may be waiting on finalization")),
            "ContentDeletionFailed",
        ),
        (
            "NamespaceContentRemaining",
            objects.ok_or(("ContentRemoved", "All content successfully removed")),
            "SomeResourcesRemain",
        ),
        (
            "NamespaceFinalizersRemaining",
            finalizers.ok_or(("ContentHasNoFinalizers", "All content-preserving finalizers finished")),
            "SomeFinalizersRemain",
        ),
    ];
    wanted.into_iter().map(|(type_, state, bad)| condition(known, type_, state, bad, now)).collect()
}

fn condition(
    known: &[NamespaceCondition],
    type_: &str,
    state: Result<String, (&str, &str)>,
    bad: &str,
    now: Timestamp,
) -> NamespaceCondition {
    let (status, reason, message) = match state {
        Ok(message) => ("True", bad, message),
        Err((good, message)) => ("False", good, message.to_owned()),
    };
    let before = known.iter().find(|condition| condition.type_ == type_);
    let since = before.filter(|before| before.status == status).and_then(|before| before.last_transition_time.clone());
    NamespaceCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(since.unwrap_or(Time(now))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_say_what_remains() {
        let remaining = Remaining {
            objects: BTreeMap::from([("configmaps.".to_owned(), 1)]),
            finalizers: BTreeMap::from([("example.com/x".to_owned(), 1)]),
            ..Remaining::default()
        };
        let first = conditions(&[], &remaining, Timestamp::UNIX_EPOCH);
        let told: Vec<_> =
            first.iter().map(|condition| (condition.status.as_str(), condition.message.as_deref().unwrap())).collect();
        let expected = [
            ("False", "All resources successfully discovered"),
            ("False", "All legacy kube types successfully parsed"),
            ("False", "All content successfully deleted, may be waiting on finalization"),
            ("True", "Some resources are remaining: configmaps. has 1 resource instances"),
            ("True", "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances"),
        ];
        assert_eq!(told, expected);
        assert_eq!(conditions(&first, &remaining, Timestamp::now()), first, "nothing to write at rest");
    }
}
