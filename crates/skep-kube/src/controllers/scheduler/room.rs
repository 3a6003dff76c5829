//! What pods ask for, and what a node has left of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::builtin;

/// Amounts by the name of what they are of, in thousandths.
type Amounts = BTreeMap<String, i128>;

/// What the pods of a node have taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) pods: usize,
    amounts: Amounts,
}

impl Taken {
    pub(super) fn add(&mut self, pod: &Pod) {
        self.pods += 1;
        add(&mut self.amounts, &requests(pod));
    }
}

/// What a node has too little of for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lack {
    /// In the order in which they are told.
    pub(super) of: Vec<String>,
    /// The node would have too little even without other pods.
    pub(super) is_hopeless: bool,
}

/// What a node lacks for one more pod. It has any amount of what every node has but this one does not tell: pods, CPU,
/// memory, storage. Of other things it has what it tells.
pub(super) fn lack(pod: &Pod, node: &Node, taken: &Taken) -> Option<Lack> {
    let told = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    let told = amounts(&told);
    let mut lack = Lack { of: Vec::new(), is_hopeless: false };
    let pods = i128::try_from(taken.pods).unwrap_or(i128::MAX).saturating_add(1).saturating_mul(1000);
    if told.get("pods").is_some_and(|room| pods > *room) {
        lack.of.push("Too many pods".to_owned());
    }
    for (name, wanted) in requests(pod).into_iter().filter(|(_, wanted)| *wanted > 0) {
        let has = match told.get(&name) {
            Some(has) => *has,
            None if name.contains('/') => 0,
            None => continue,
        };
        if wanted + taken.amounts.get(&name).copied().unwrap_or(0) > has {
            lack.is_hopeless |= wanted > has;
            lack.of.push(format!("Insufficient {name}"));
        }
    }
    (!lack.of.is_empty()).then_some(lack)
}

/// What a pod asks for: what its containers need together, or what its most demanding moment before that needs.
fn requests(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::new() };
    let mut together = Amounts::new();
    let mut peak = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            // It stays beside everything that follows.
            add(&mut together, &own);
            raise(&mut peak, &together);
        } else {
            let mut moment = together.clone();
            add(&mut moment, &own);
            raise(&mut peak, &moment);
        }
    }
    for container in &spec.containers {
        add(&mut together, &of_container(container));
    }
    raise(&mut peak, &together);
    let of_pod = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    peak.extend(of_pod.map(amounts).unwrap_or_default());
    add(&mut peak, &spec.overhead.as_ref().map(amounts).unwrap_or_default());
    peak
}

fn of_container(container: &Container) -> Amounts {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    requests.map(amounts).unwrap_or_default()
}

fn amounts(quantities: &BTreeMap<String, Quantity>) -> Amounts {
    let read = |quantity: &Quantity| builtin::Quantity::parse(&quantity.0).map_or(0, builtin::Quantity::milli);
    quantities.iter().map(|(name, quantity)| (name.clone(), read(quantity))).collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
}

fn raise(peak: &mut Amounts, moment: &Amounts) {
    for (name, amount) in moment {
        let known = peak.entry(name.clone()).or_default();
        *known = (*known).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asking(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    #[test]
    fn a_pod_asks_for_its_most_demanding_moment() {
        let sidecar = json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}});
        let table = [
            (json!({"containers": [asking("1"), asking("500m")]}), 1500),
            (json!({"containers": [asking("1")], "initContainers": [asking("3"), asking("2")]}), 3000),
            (json!({"containers": [asking("1")], "initContainers": [sidecar, asking("2")]}), 2100),
            (json!({"containers": [asking("3")], "initContainers": [sidecar, asking("2")]}), 3100),
            (json!({"containers": [asking("1")], "overhead": {"cpu": "10m"}}), 1010),
            (json!({"containers": [asking("1")], "resources": {"requests": {"cpu": "4"}}}), 4000),
        ];
        for (spec, expected) in table {
            assert_eq!(requests(&pod(spec.clone())).get("cpu"), Some(&expected), "{spec}");
        }
    }

    #[test]
    fn a_node_has_what_its_pods_have_left() {
        let node: Node = serde_json::from_value(json!({"status": {"allocatable": {"cpu": "2", "pods": "2"}}})).unwrap();
        let mut taken = Taken::default();
        taken.add(&pod(json!({"containers": [asking("1500m")]})));
        let lack_of = |requests: Value| {
            let pod = pod(json!({"containers": [{"name": "c", "resources": {"requests": requests}}]}));
            lack(&pod, &node, &taken)
        };
        let lacking = |of: &str, is_hopeless| Some(Lack { of: vec![of.to_owned()], is_hopeless });
        assert_eq!(lack_of(json!({})), None);
        assert_eq!(lack_of(json!({"cpu": "500m"})), None);
        assert_eq!(lack_of(json!({"cpu": "501m"})), lacking("Insufficient cpu", false));
        assert_eq!(lack_of(json!({"cpu": "1000"})), lacking("Insufficient cpu", true));
        assert_eq!(lack_of(json!({"memory": "1Ei"})), None, "of what it does not tell it has any amount");
        assert_eq!(lack_of(json!({"example.com/gpu": "1"})), lacking("Insufficient example.com/gpu", true));
        taken.add(&pod(json!({"containers": []})));
        let both = lack(&pod(json!({"containers": [asking("1")]})), &node, &taken).unwrap();
        assert_eq!(both.of, ["Too many pods", "Insufficient cpu"]);
    }
}
