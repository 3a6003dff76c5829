//! The network that the backend of an MCPServer may use, where permission profiles are enforced.
//!
//! A NetworkPolicy knows addresses and ports. A name that a profile allows is not held to: it allows every address, on the
//! ports that the profile allows.

use std::net::IpAddr;

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use skep_api::config::run_config::{NetworkPermissions, OutboundPermissions, PermissionProfile};
use skep_api::kinds::mcp_server::{MCPServerSpec, PermissionProfileSource};
use skep_api::names::labels::{self, Labels};
use skep_api::names::mcp_server;

use super::{Inputs, Target};

/// Where names are looked up.
const NAME_SERVICE: i32 = 53;
/// The mode of a profile whose server has the network of its host, and of one whose server has none.
const HOST: &str = "host";
const NONE: &str = "none";

/// The policy of the backend; none where its profile leaves it the whole network.
pub fn network_policy(inputs: &Inputs<'_>) -> Option<NetworkPolicy> {
    let Target::Server(spec) = inputs.target else { return None };
    let network = profile(inputs, spec)?.network.unwrap_or_default();
    if network.mode == HOST {
        return None;
    }
    let egress = egress(&network);
    let visitors = network.inbound.iter().flat_map(|inbound| &inbound.allow_host).filter_map(|host| block(host));
    let visitors: Vec<NetworkPolicyPeer> = visitors.collect();
    if egress.is_none() && network.inbound.is_none_or(|inbound| inbound.allow_host.is_empty()) {
        return None;
    }
    let name = inputs.common.name;
    let proxy = NetworkPolicyPeer { pod_selector: Some(selector(inputs.labels())), ..NetworkPolicyPeer::default() };
    let ingress = NetworkPolicyIngressRule {
        from: Some([vec![proxy], visitors].concat()),
        ..NetworkPolicyIngressRule::default()
    };
    let types = if egress.is_some() { &["Ingress", "Egress"][..] } else { &["Ingress"] };
    Some(NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(mcp_server::network_policy(name)),
            labels: Some(inputs.labels()),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selector(labels::backend(Labels::new(), name))),
            policy_types: Some(types.iter().map(|&name| name.to_owned()).collect()),
            ingress: Some(vec![ingress]),
            // Without a rule nothing is allowed, and the API server keeps no empty list.
            egress: egress.filter(|rules| !rules.is_empty()),
        }),
    })
}

/// The profile that is enforced, if any is.
fn profile(inputs: &Inputs<'_>, spec: &MCPServerSpec) -> Option<PermissionProfile> {
    if !inputs.settings.enforce_network_profiles {
        return None;
    }
    match spec.permission_profile.as_ref()? {
        profile if profile.type_ == PermissionProfileSource::Builtin => PermissionProfile::builtin(&profile.name),
        _ => inputs.resolved.permission_profile.clone(),
    }
}

/// Where the backend may connect; `None` for everywhere.
fn egress(network: &NetworkPermissions) -> Option<Vec<NetworkPolicyEgressRule>> {
    let nowhere = OutboundPermissions::default();
    let outbound = network.outbound.as_ref().filter(|_| network.mode != NONE).unwrap_or(&nowhere);
    if outbound.insecure_allow_all {
        return None;
    }
    if outbound.allow_host.is_empty() && outbound.allow_port.is_empty() {
        return Some(Vec::new());
    }
    let port = |protocol: &str, number: i32| NetworkPolicyPort {
        port: Some(IntOrString::Int(number)),
        protocol: Some(protocol.to_owned()),
        ..NetworkPolicyPort::default()
    };
    let ports: Vec<NetworkPolicyPort> = outbound.allow_port.iter().map(|&number| port("TCP", number)).collect();
    let blocks: Vec<NetworkPolicyPeer> = outbound.allow_host.iter().filter_map(|host| block(host)).collect();
    let has_names = outbound.allow_host.is_empty() || blocks.len() < outbound.allow_host.len();
    let mut rules = vec![NetworkPolicyEgressRule {
        ports: (!ports.is_empty()).then_some(ports),
        to: (!has_names).then_some(blocks),
    }];
    if has_names {
        let ports = Some(vec![port("UDP", NAME_SERVICE), port("TCP", NAME_SERVICE)]);
        rules.push(NetworkPolicyEgressRule { ports, to: None });
    }
    Some(rules)
}

/// An address or a range of addresses; none for a name.
fn block(host: &str) -> Option<NetworkPolicyPeer> {
    let (address, bits) = host.split_once('/').map_or((host, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits: u8 = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    let block = IPBlock { cidr: format!("{address}/{bits}"), except: None };
    (bits <= most).then(|| NetworkPolicyPeer { ip_block: Some(block), ..NetworkPolicyPeer::default() })
}

fn selector(labels: Labels) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::proxy::pod::samples::Sample;

    /// The spec of the policy under a profile in a ConfigMap.
    fn spec(profile: &Value) -> Value {
        let mut sample = Sample::new(false, "s");
        sample.settings.enforce_network_profiles = true;
        sample.spec["permissionProfile"] = json!({"type": "configmap", "name": "c", "key": "k"});
        sample.resolved.permission_profile = Some(serde_json::from_value(profile.clone()).unwrap());
        json!(sample.with_inputs(network_policy).map(|policy| policy.spec))
    }

    #[test]
    fn builtin_profiles_close_the_network_or_leave_it_open() {
        let policy = |name: Option<&str>, enforce| {
            let mut sample = Sample::new(false, "s");
            sample.settings.enforce_network_profiles = enforce;
            if let Some(name) = name {
                sample.spec["permissionProfile"] = json!({"type": "builtin", "name": name});
            }
            sample.with_inputs(network_policy)
        };
        for name in [None, Some("network")] {
            assert_eq!(policy(name, true), None, "{name:?}");
        }
        assert_eq!(policy(Some("none"), false), None);
        assert_eq!(policy(Some("none"), true), policy(Some("stdio"), true));
        let closed = json!(policy(Some("none"), true));
        assert_eq!(closed["metadata"]["name"], "s-network");
        let proxy = json!({"podSelector": {"matchLabels": labels::mcp_server("s")}});
        let expected = json!({"podSelector": {"matchLabels": {"app": "s", "toolhive": "true"}},
            "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": [proxy]}]});
        assert_eq!(closed["spec"], expected);
    }

    #[test]
    fn profiles_allow_addresses_and_ports() {
        let names = json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]});
        let https = json!([{"port": 443, "protocol": "TCP"}]);
        let block = |cidr: &str| json!({"ipBlock": {"cidr": cidr}});
        for (outbound, expected) in [
            (json!({}), Value::Null),
            (json!({"allow_port": [443]}), json!([{"ports": https}, names])),
            (json!({"allow_host": ["api.example.com"], "allow_port": [443]}), json!([{"ports": https}, names])),
            (json!({"allow_host": ["api.example.com", "10.0.0.1"]}), json!([{}, names])),
            (
                json!({"allow_host": ["10.0.0.1", "fd00::/8"], "allow_port": [443]}),
                json!([{"ports": https, "to": [block("10.0.0.1/32"), block("fd00::/8")]}]),
            ),
        ] {
            let found = spec(&json!({"network": {"outbound": outbound}}));
            assert_eq!(found["egress"], expected, "{outbound}");
            assert_eq!(found["policyTypes"], json!(["Ingress", "Egress"]), "{outbound}");
        }
        let open = json!({"insecure_allow_all": true});
        assert_eq!(spec(&json!({"network": {"mode": "none", "outbound": open}}))["egress"], Value::Null);
        assert_eq!(spec(&json!({"network": {"outbound": open}})), Value::Null);
        assert_eq!(spec(&json!({"network": {"mode": "host"}})), Value::Null);
        let visited =
            spec(&json!({"network": {"outbound": open, "inbound": {"allow_host": ["10.0.0.0/33", "10.0.0.0/8"]}}}));
        assert_eq!(visited["policyTypes"], json!(["Ingress"]));
        assert_eq!(visited["ingress"][0]["from"].as_array().map(Vec::len), Some(2));
        assert_eq!(visited["ingress"][0]["from"][1], block("10.0.0.0/8"));
        assert_eq!(
            spec(&json!({}))["policyTypes"],
            json!(["Ingress", "Egress"]),
            "a profile without a network has none"
        );
    }
}
