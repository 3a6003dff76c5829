//! The choice of a node, or the sentence that says why there is none.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};

use super::fit::check;
use super::room::Taken;

/// The name of a node for the pod: the one with the fewest pods.
pub(super) fn choose(
    pod: &Pod,
    nodes: &[Arc<Node>],
    claims: &[Arc<PersistentVolumeClaim>],
    taken: &HashMap<String, Taken>,
) -> Result<String, String> {
    if nodes.is_empty() {
        return Err("no nodes available to schedule pods".to_owned());
    }
    let total = nodes.len();
    if let Some(problem) = unbound_claim(pod, claims) {
        return Err(format!("0/{total} nodes are available: {problem}. {}", helpless(total)));
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut hopeless = 0;
    let mut fitting = Vec::new();
    let nothing = Taken::default();
    for node in nodes {
        let name = node.metadata.name.clone().unwrap_or_default();
        let there = taken.get(&name).unwrap_or(&nothing);
        match check(pod, node, there) {
            Ok(()) => fitting.push((there.pods, name)),
            Err(refusal) => {
                hopeless += usize::from(refusal.is_hopeless());
                for reason in refusal.messages() {
                    *reasons.entry(reason).or_default() += 1;
                }
            }
        }
    }
    if let Some((_, name)) = fitting.into_iter().min() {
        return Ok(name);
    }
    let reasons: Vec<_> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let ending = if hopeless == total {
        helpless(total)
    } else {
        let victims = total - hopeless;
        format!(
            "no new claims to deallocate, preemption: 0/{total} nodes are available: {victims} No preemption victims \
             found for incoming pod."
        )
    };
    Err(format!("0/{total} nodes are available: {}. {ending}", reasons.join(", ")))
}

fn helpless(total: usize) -> String {
    format!(
        "no new claims to deallocate, preemption: 0/{total} nodes are available: {total} Preemption is not helpful for \
         scheduling."
    )
}

/// A pod waits for the volumes it wants.
fn unbound_claim(pod: &Pod, claims: &[Arc<PersistentVolumeClaim>]) -> Option<String> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    for wanted in volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref()) {
        let claim = claims.iter().find(|claim| claim.metadata.name.as_ref() == Some(&wanted.claim_name));
        let Some(claim) = claim else {
            return Some(format!("persistentvolumeclaim \"{}\" not found", wanted.claim_name));
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Some(format!("persistentvolumeclaim \"{}\" is being deleted", wanted.claim_name));
        }
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase != Some("Bound") {
            return Some("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
    fn choice(spec: Value, nodes: &Value, claims: &Value) -> Result<String, String> {
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        let nodes: Vec<Node> = serde_json::from_value(nodes.clone()).unwrap();
        let claims: Vec<PersistentVolumeClaim> = serde_json::from_value(claims.clone()).unwrap();
        let nodes: Vec<_> = nodes.into_iter().map(Arc::new).collect();
        let claims: Vec<_> = claims.into_iter().map(Arc::new).collect();
        let mut taken = Taken::default();
        (0..3).for_each(|_| taken.add(&Pod::default()));
        choose(&pod, &nodes, &claims, &HashMap::from([("a".to_owned(), taken)]))
    }

    #[test]
    fn choices_and_sentences() {
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let both = json!([{"metadata": {"name": "a"}, "status": ready}, {"metadata": {"name": "b"}, "status": ready}]);
        let one = json!([{"metadata": {"name": "a"}, "status": ready}]);
        let with_claim = json!({"containers": [], "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]});
        let sentence = |reason: &str| {
            Err(format!(
                "0/1 nodes are available: {reason}. no new claims to deallocate, preemption: 0/1 nodes are \
                 available: 1 Preemption is not helpful for scheduling."
            ))
        };
        let plain = json!({"containers": []});
        let picky = json!({"containers": [], "nodeSelector": {"a": "b"}});
        let table = [
            (plain.clone(), json!([]), json!([]), Err("no nodes available to schedule pods".to_owned())),
            (plain, both, json!([]), Ok("b".to_owned())),
            (picky, one.clone(), json!([]), sentence("1 node(s) didn't match Pod's node affinity/selector")),
            (with_claim.clone(), one.clone(), json!([]), sentence("persistentvolumeclaim \"c\" not found")),
            (
                with_claim.clone(),
                one.clone(),
                json!([{"metadata": {"name": "c"}}]),
                sentence("pod has unbound immediate PersistentVolumeClaims"),
            ),
            (with_claim, one, json!([{"metadata": {"name": "c"}, "status": {"phase": "Bound"}}]), Ok("a".to_owned())),
            (
                json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}),
                json!([{"metadata": {"name": "a"}, "status": {"conditions": ready["conditions"],
                    "allocatable": {"cpu": "2", "pods": "3"}}}]),
                json!([]),
                sentence("1 Insufficient cpu, 1 Too many pods"),
            ),
        ];
        for (spec, nodes, claims, expected) in table {
            assert_eq!(choice(spec.clone(), &nodes, &claims), expected, "{spec}");
        }
    }
}
