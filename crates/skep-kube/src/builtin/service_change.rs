//! What an update of a service says without saying it: addresses and ports that were given to it stay with it for as
//! long as its type has them.

use serde_json::{Map, Value, json};

/// Readies a service that replaces `old`.
pub fn settle_service(new: &mut Value, old: &Value) {
    let before = &old["spec"];
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if is_external(spec.get("type")) && !is_external(before.get("type")) {
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            drop_same(spec, before, member);
        }
    } else {
        follow_the_single_address(spec, before);
        if text(spec.get("clusterIP")).is_empty() && !is_external(spec.get("type")) {
            for member in ["clusterIP", "clusterIPs"] {
                if let Some(value) = before.get(member) {
                    spec.insert(member.to_owned(), value.clone());
                }
            }
        }
    }
    if has_node_ports(before.get("type")) && !has_node_ports(spec.get("type")) {
        drop_node_ports(spec, before);
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn is_external(kind: Option<&Value>) -> bool {
    text(kind) == "ExternalName"
}

fn has_node_ports(kind: Option<&Value>) -> bool {
    matches!(text(kind), "NodePort" | "LoadBalancer")
}

/// Who changes the one address and leaves the list alone means the list, too.
fn follow_the_single_address(spec: &mut Map<String, Value>, before: &Value) {
    let single = text(spec.get("clusterIP")).to_owned();
    if single == text(before.get("clusterIP")) || spec.get("clusterIPs") != before.get("clusterIPs") {
        return;
    }
    if single.is_empty() {
        spec.remove("clusterIPs");
    } else {
        spec.insert("clusterIPs".to_owned(), json!([single]));
    }
}

fn drop_same(spec: &mut Map<String, Value>, before: &Value, member: &str) {
    if spec.get(member) == before.get(member) {
        spec.remove(member);
    }
}

/// Ports that nobody asked to keep go with the type that had them.
fn drop_node_ports(spec: &mut Map<String, Value>, before: &Value) {
    let ports = |list: Option<&Value>| -> Vec<Value> {
        list.and_then(Value::as_array).into_iter().flatten().map(|port| port["nodePort"].clone()).collect()
    };
    if ports(spec.get("ports")) == ports(before.get("ports")) {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(port) = port.as_object_mut() {
                port.remove("nodePort");
            }
        }
    }
    for member in ["externalTrafficPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts"] {
        drop_same(spec, before, member);
    }
}
