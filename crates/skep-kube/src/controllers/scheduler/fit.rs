//! Whether a pod may run on a node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration};
use serde_json::{Value, json};

use super::room::{self, Lack, Taken};

/// Why a node does not take a pod, in the scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotReady,
    Unschedulable,
    Affinity,
    Taint { key: String, value: String },
    Full(Lack),
}

impl Refusal {
    pub(super) fn messages(&self) -> Vec<String> {
        vec![match self {
            Self::NotReady => "node(s) were not ready".to_owned(),
            Self::Unschedulable => "node(s) were unschedulable".to_owned(),
            Self::Affinity => "node(s) didn't match Pod's node affinity/selector".to_owned(),
            Self::Taint { key, value } => format!("node(s) had untolerated taint(s) {{{key}: {value}}}"),
            Self::Full(lack) => return lack.of.clone(),
        }]
    }

    /// Whether the pod would be refused even if all others went.
    pub(super) fn is_hopeless(&self) -> bool {
        !matches!(self, Self::Full(Lack { is_hopeless: false, .. }))
    }
}

/// What of a node decides about pods.
pub(super) fn fingerprint(node: &Node) -> Value {
    let spec = node.spec.clone().unwrap_or_default();
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone());
    json!([node.metadata.uid, node.metadata.labels, spec.unschedulable, spec.taints, is_ready(node), allocatable])
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Checks in the order in which the reasons are told.
pub(super) fn check(pod: &Pod, node: &Node, taken: &Taken) -> Result<(), Refusal> {
    let spec = node.spec.clone().unwrap_or_default();
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.clone()).unwrap_or_default();
    let cordoned = spec.unschedulable == Some(true);
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    if cordoned && !tolerations.iter().any(|toleration| tolerates(toleration, &cordon)) {
        return Err(Refusal::Unschedulable);
    }
    if !matches_selector(pod, node) || !matches_affinity(pod, node) {
        return Err(Refusal::Affinity);
    }
    let taints = spec.taints.unwrap_or_default();
    let strict = taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
    if let Some(taint) = strict.into_iter().find(|taint| !tolerations.iter().any(|known| tolerates(known, taint))) {
        return Err(Refusal::Taint { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default() });
    }
    if !is_ready(node) {
        return Err(Refusal::NotReady);
    }
    room::lack(pod, node, taken).map_or(Ok(()), |lack| Err(Refusal::Full(lack)))
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != taint.effect || !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        _ => toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default(),
    }
}

fn matches_selector(pod: &Pod, node: &Node) -> bool {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.node_selector.clone()).unwrap_or_default();
    let labels = node.metadata.labels.as_ref();
    wanted.iter().all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
}

fn matches_affinity(pod: &Pod, node: &Node) -> bool {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_none_or(|selector| selector.node_selector_terms.iter().any(|term| matches_term(term, node)))
}

fn matches_term(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let name = node.metadata.name.clone().unwrap_or_default();
    let fields = BTreeMap::from([("metadata.name".to_owned(), name)]);
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let on_fields = term.match_fields.as_deref().unwrap_or_default();
    // A term without requirements selects nothing.
    !(expressions.is_empty() && on_fields.is_empty())
        && expressions.iter().all(|requirement| holds(requirement, &labels))
        && on_fields.iter().all(|requirement| holds(requirement, &fields))
}

fn holds(requirement: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let actual = labels.get(&requirement.key);
    let compared = |compare: fn(i64, i64) -> bool| {
        let actual = actual.and_then(|actual| actual.parse().ok());
        let bound = values.first().and_then(|bound| bound.parse().ok());
        actual.zip(bound).is_some_and(|(actual, bound)| compare(actual, bound))
    };
    match requirement.operator.as_str() {
        "In" => actual.is_some_and(|actual| values.contains(actual)),
        "NotIn" => actual.is_none_or(|actual| !values.contains(actual)),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        "Gt" => compared(|actual, bound| actual > bound),
        "Lt" => compared(|actual, bound| actual < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
    fn node(overlay: Value) -> Node {
        let mut node = json!({
            "metadata": {"name": "n1", "labels": {"disk": "ssd", "cores": "8"}},
            "spec": {},
            "status": {"allocatable": {"pods": "2"}, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        json_patch::merge(&mut node, &overlay);
        serde_json::from_value(node).unwrap()
    }

    fn pod(mut spec: Value) -> Pod {
        spec["containers"] = json!([]);
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    fn affinity(key: &str, operator: &str, values: &[&str]) -> Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]}}}})
    }

    #[test]
    fn pods_fit_or_the_reason_is_told() {
        let taint = json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
        let untolerated = Err(Refusal::Taint { key: "k".into(), value: "v".into() });
        let cordoned = json!({"spec": {"unschedulable": true}});
        let full = Lack { of: vec!["Too many pods".into()], is_hopeless: false };
        let table = [
            (json!({}), json!({}), 0, Ok(())),
            (json!({}), json!({}), 2, Err(Refusal::Full(full))),
            (json!({}), json!({"status": {"conditions": null}}), 0, Err(Refusal::NotReady)),
            (json!({}), cordoned.clone(), 0, Err(Refusal::Unschedulable)),
            (json!({"tolerations": [{"operator": "Exists"}]}), cordoned, 0, Ok(())),
            (json!({"nodeSelector": {"disk": "ssd"}}), json!({}), 0, Ok(())),
            (json!({"nodeSelector": {"disk": "hdd"}}), json!({}), 0, Err(Refusal::Affinity)),
            (affinity("disk", "In", &["ssd"]), json!({}), 0, Ok(())),
            (affinity("disk", "NotIn", &["ssd"]), json!({}), 0, Err(Refusal::Affinity)),
            (affinity("cores", "Gt", &["4"]), json!({}), 0, Ok(())),
            (affinity("cores", "Lt", &["4"]), json!({}), 0, Err(Refusal::Affinity)),
            (affinity("gpu", "DoesNotExist", &[]), json!({}), 0, Ok(())),
            (json!({}), taint.clone(), 0, untolerated.clone()),
            (json!({"tolerations": [{"key": "k", "value": "v"}]}), taint.clone(), 0, Ok(())),
            (
                json!({"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]}),
                taint,
                0,
                untolerated,
            ),
            (json!({}), json!({"spec": {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}}), 0, Ok(())),
        ];
        for (spec, overlay, there, expected) in table {
            let mut taken = Taken::default();
            (0..there).for_each(|_| taken.add(&pod(json!({}))));
            assert_eq!(check(&pod(spec.clone()), &node(overlay.clone()), &taken), expected, "{spec} {overlay}");
        }
    }
}
