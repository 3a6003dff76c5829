//! The files that every pod has: who it is, and whom it can ask for others.

use std::fmt::Write as _;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt as _;

const CLUSTER: &str = "cluster.local";
/// What a host name may be at most.
const LONGEST_NAME: usize = 63;

/// The host name of a pod.
pub(super) fn hostname(pod: &Pod) -> String {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.hostname.clone()).filter(|name| !name.is_empty());
    let mut name = wanted.unwrap_or_else(|| pod.name_any());
    name.truncate(LONGEST_NAME);
    name.trim_end_matches(['-', '.']).to_owned()
}

/// `/etc/hosts` of a pod.
pub(super) fn hosts(pod: &Pod, address: IpAddr) -> String {
    let mut text = String::from(
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::0\tip6-localnet\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n",
    );
    let hostname = hostname(pod);
    let subdomain = pod.spec.as_ref().and_then(|spec| spec.subdomain.clone()).filter(|name| !name.is_empty());
    // Writing to a String cannot fail.
    let _ = match subdomain {
        Some(subdomain) => {
            let namespace = pod.namespace().unwrap_or_default();
            writeln!(text, "{address}\t{hostname}.{subdomain}.{namespace}.svc.{CLUSTER}\t{hostname}")
        }
        None => writeln!(text, "{address}\t{hostname}"),
    };
    for alias in pod.spec.iter().flat_map(|spec| spec.host_aliases.iter().flatten()) {
        let _ = writeln!(text, "{}\t{}", alias.ip, alias.hostnames.clone().unwrap_or_default().join("\t"));
    }
    text
}

/// `/etc/resolv.conf` of a pod, or `None` when it is to have that of the machine.
pub(super) fn resolver(spec: &PodSpec, namespace: &str, server: Option<IpAddr>) -> Option<String> {
    let policy = spec.dns_policy.as_deref().unwrap_or("ClusterFirst");
    let host_network = spec.host_network == Some(true);
    let cluster = policy == "ClusterFirstWithHostNet" || (policy == "ClusterFirst" && !host_network);
    let mut servers: Vec<String> = Vec::new();
    let mut searches: Vec<String> = Vec::new();
    let mut options: Vec<String> = Vec::new();
    if cluster && let Some(server) = server {
        servers.push(server.to_string());
        searches.extend([format!("{namespace}.svc.{CLUSTER}"), format!("svc.{CLUSTER}"), CLUSTER.to_owned()]);
        options.push("ndots:5".to_owned());
    } else if policy != "None" {
        return None;
    }
    if let Some(extra) = &spec.dns_config {
        servers.extend(extra.nameservers.iter().flatten().cloned());
        searches.extend(extra.searches.iter().flatten().cloned());
        for option in extra.options.iter().flatten() {
            let Some(name) = &option.name else { continue };
            options.retain(|known| known.split(':').next() != Some(name));
            options.push(option.value.as_ref().map_or_else(|| name.clone(), |value| format!("{name}:{value}")));
        }
    }
    let mut text = String::new();
    for server in servers {
        let _ = writeln!(text, "nameserver {server}");
    }
    if !searches.is_empty() {
        let _ = writeln!(text, "search {}", searches.join(" "));
    }
    if !options.is_empty() {
        let _ = writeln!(text, "options {}", options.join(" "));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_knows_its_name() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "web-0", "namespace": "n"}, "spec": {
            "containers": [], "subdomain": "web", "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["a", "b"]}]}}))
        .unwrap();
        let text = hosts(&pod, [10, 244, 0, 7].into());
        assert!(text.contains("\n10.244.0.7\tweb-0.web.n.svc.cluster.local\tweb-0\n10.0.0.9\ta\tb\n"), "{text}");
        let long: Pod = serde_json::from_value(json!({"metadata": {"name": format!("{}-x", "a".repeat(62))}})).unwrap();
        assert_eq!(hostname(&long), "a".repeat(62));
    }

    #[test]
    fn names_are_looked_up_in_the_cluster_first() {
        let server = Some([10, 96, 0, 10].into());
        let spec = |value| serde_json::from_value::<PodSpec>(value).unwrap();
        let text = resolver(&spec(json!({"containers": []})), "n", server).unwrap();
        let expected =
            "nameserver 10.96.0.10\nsearch n.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n";
        assert_eq!(text, expected);
        assert_eq!(resolver(&spec(json!({"containers": [], "dnsPolicy": "Default"})), "n", server), None);
        assert_eq!(resolver(&spec(json!({"containers": [], "hostNetwork": true})), "n", server), None);
        assert_eq!(resolver(&spec(json!({"containers": []})), "n", None), None);
        let own = json!({"containers": [], "dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]}});
        let text = resolver(&spec(own), "n", server).unwrap();
        assert_eq!(text, "nameserver 10.0.0.1\noptions ndots:2 edns0\n");
    }
}
