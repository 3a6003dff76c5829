//! What garbage collection does with one object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::graph::Node;

/// The finalizers that the API server sets for the two policies.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// What is known of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Present,
    /// It is taken to exist, but no watch has shown it yet, so none would tell of its end.
    Unseen,
    /// It exists, but wants its dependents to go before it.
    Waiting,
    Absent,
}

impl Owner {
    /// Whether its dependents stay.
    fn keeps(self) -> bool {
        matches!(self, Self::Present | Self::Unseen)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Background,
    Foreground,
    Orphan,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Delete(Policy),
    /// Keeps the object, without its references to owners that are absent or waiting.
    Disown(Vec<String>),
    /// Keeps the references, but no owner waits for the object any more.
    Unblock,
    /// The dependents lose their reference, then the finalizer goes.
    OrphanDependents,
    /// No dependent is left that blocks it.
    FinishForeground,
}

/// Decides about `node`. `owners` are in the order of its references; `dependents` are all known objects that refer
/// to it.
pub(super) fn decide(node: &Node, owners: &[Owner], dependents: &[&Node]) -> Action {
    if node.is_orphaning() {
        return Action::OrphanDependents;
    }
    if node.is_foreground() {
        let blocked = dependents.iter().any(|dependent| blocks(node, dependent));
        return if blocked { Action::Nothing } else { Action::FinishForeground };
    }
    if node.deleting || owners.is_empty() {
        return Action::Nothing;
    }
    if owners.iter().any(|owner| owner.keeps()) {
        let others = node.owners.iter().zip(owners).filter(|(_, state)| !state.keeps());
        let others: Vec<String> = others.map(|(owner, _)| owner.uid.clone()).collect();
        return if others.is_empty() { Action::Nothing } else { Action::Disown(others) };
    }
    if owners.contains(&Owner::Waiting) && !dependents.is_empty() {
        // In a circle everybody would wait for everybody.
        let in_circle = dependents.iter().any(|dependent| dependent.is_foreground());
        if in_circle && node.owners.iter().any(is_blocking) {
            return Action::Unblock;
        }
        // The whole tree goes bottom up, or the owner would not have waited for all of it.
        return Action::Delete(Policy::Foreground);
    }
    let policy = if node.has_finalizer(ORPHAN) {
        Policy::Orphan
    } else if node.has_finalizer(FOREGROUND) {
        Policy::Foreground
    } else {
        Policy::Background
    };
    Action::Delete(policy)
}

fn blocks(owner: &Node, dependent: &Node) -> bool {
    let mut references = dependent.owners.iter().filter(|reference| reference.uid == owner.uid);
    references.any(is_blocking)
}

fn is_blocking(reference: &OwnerReference) -> bool {
    reference.block_owner_deletion == Some(true)
}

#[cfg(test)]
mod tests {
    use kube::discovery::ApiResource;
    use serde_json::json;

    use super::*;

    fn node(uid: &str, owners: &[(&str, bool)], finalizers: &[&str], deleting: bool) -> Node {
        let owners: Vec<_> = owners
            .iter()
            .map(|(owner, blocks)| {
                json!({"apiVersion": "v1", "kind": "K", "name": owner, "uid": owner, "blockOwnerDeletion": blocks})
            })
            .collect();
        let deletion = deleting.then_some("2026-01-01T00:00:00Z");
        let metadata =
            json!({"uid": uid, "ownerReferences": owners, "finalizers": finalizers, "deletionTimestamp": deletion});
        let api = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        Node::new(&api, true, serde_json::from_value(metadata).unwrap())
    }

    #[test]
    fn decisions() {
        use Owner::{Absent, Present, Unseen, Waiting};
        let one = || node("x", &[("a", true)], &[], false);
        let two = || node("x", &[("a", true), ("b", true)], &[], false);
        let child = node("child", &[("x", true)], &[], false);
        let in_circle = node("a", &[("x", true)], &[FOREGROUND], true);
        let soft_child = node("child", &[("x", false)], &[], false);
        let table: Vec<(Node, Vec<Owner>, Vec<&Node>, Action)> = vec![
            (node("x", &[], &[], false), vec![], vec![&child], Action::Nothing),
            (one(), vec![Present], vec![], Action::Nothing),
            (one(), vec![Unseen], vec![], Action::Nothing),
            (two(), vec![Unseen, Absent], vec![], Action::Disown(vec!["b".into()])),
            (one(), vec![Absent], vec![], Action::Delete(Policy::Background)),
            (one(), vec![Absent], vec![&child], Action::Delete(Policy::Background)),
            (two(), vec![Present, Absent], vec![], Action::Disown(vec!["b".into()])),
            (two(), vec![Waiting, Present], vec![], Action::Disown(vec!["a".into()])),
            (two(), vec![Absent, Absent], vec![], Action::Delete(Policy::Background)),
            (one(), vec![Waiting], vec![], Action::Delete(Policy::Background)),
            (one(), vec![Waiting], vec![&child], Action::Delete(Policy::Foreground)),
            (one(), vec![Waiting], vec![&in_circle], Action::Unblock),
            (
                node("x", &[("a", false)], &[], false),
                vec![Waiting],
                vec![&in_circle],
                Action::Delete(Policy::Foreground),
            ),
            (node("x", &[("a", true)], &[ORPHAN], false), vec![Absent], vec![], Action::Delete(Policy::Orphan)),
            (node("x", &[], &[FOREGROUND], true), vec![], vec![], Action::FinishForeground),
            (node("x", &[], &[FOREGROUND], true), vec![], vec![&child], Action::Nothing),
            (node("x", &[], &[FOREGROUND], true), vec![], vec![&soft_child], Action::FinishForeground),
            (node("x", &[], &[ORPHAN], true), vec![], vec![&child], Action::OrphanDependents),
            (node("x", &[("a", true)], &["other"], true), vec![Absent], vec![], Action::Nothing),
        ];
        for (node, owners, dependents, expected) in table {
            assert_eq!(decide(&node, &owners, &dependents), expected, "{node:?} {owners:?}");
        }
    }
}
