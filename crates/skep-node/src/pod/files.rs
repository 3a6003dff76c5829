//! The files that every pod has: who it is, and whom it can ask for others.

use std::fmt::Write as _;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt as _;

use super::resolver::{CLUSTER, ResolverSettings};

/// What a host name may be at most.
const LONGEST_NAME: usize = 63;

/// The host name of a pod.
pub(super) fn hostname(pod: &Pod) -> String {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.hostname.clone()).filter(|name| !name.is_empty());
    let mut name = wanted.unwrap_or_else(|| pod.name_any());
    name.truncate(LONGEST_NAME);
    name.trim_end_matches(['-', '.']).to_owned()
}

/// `/etc/hosts` of a pod that has a network of its own.
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
    text + &aliases(pod)
}

/// `/etc/hosts` of a pod on the network of the machine, or `None` when it is to have that of the machine.
pub(super) fn machine_hosts(pod: &Pod, machine: &str) -> Option<String> {
    let aliases = aliases(pod);
    (!aliases.is_empty()).then(|| format!("# Kubernetes-managed hosts file (host network).\n{machine}\n{aliases}"))
}

fn aliases(pod: &Pod) -> String {
    let mut text = String::new();
    for alias in pod.spec.iter().flat_map(|spec| spec.host_aliases.iter().flatten()) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}\t{}", alias.ip, alias.hostnames.clone().unwrap_or_default().join("\t"));
    }
    text
}

/// `/etc/resolv.conf` of a pod, given that of the machine, or `None` when it is to have the latter.
pub(super) fn resolver(spec: &PodSpec, namespace: &str, server: Option<IpAddr>, machine: &str) -> Option<String> {
    let policy = spec.dns_policy.as_deref().unwrap_or("ClusterFirst");
    let host_network = spec.host_network == Some(true);
    let in_cluster = policy == "ClusterFirstWithHostNet" || (policy == "ClusterFirst" && !host_network);
    let mut settings = match server.filter(|_| in_cluster) {
        Some(server) => ResolverSettings::of_cluster(namespace, server),
        None if policy == "None" => ResolverSettings::default(),
        None if spec.dns_config.is_none() => return None,
        None => ResolverSettings::of_machine(machine),
    };
    if let Some(more) = &spec.dns_config {
        settings.add(more);
    }
    Some(settings.text())
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
        let text = machine_hosts(&pod, "127.0.0.1 localhost").unwrap();
        assert!(text.ends_with("\n127.0.0.1 localhost\n10.0.0.9\ta\tb\n"), "{text}");
        assert_eq!(machine_hosts(&long, "127.0.0.1 localhost"), None);
    }

    #[test]
    fn names_are_looked_up_in_the_cluster_first() {
        let server = Some([10, 96, 0, 10].into());
        let machine = "# by hand\nnameserver 192.0.2.1\nsearch old\nsearch example.org\noptions ndots:1 rotate\n";
        let text = |mut members: serde_json::Value, server| {
            members["containers"] = json!([]);
            resolver(&serde_json::from_value(members).unwrap(), "n", server, machine)
        };
        let in_cluster =
            "nameserver 10.96.0.10\nsearch n.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n";
        assert_eq!(text(json!({}), server).unwrap(), in_cluster);
        let from_outside = json!({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet"});
        assert_eq!(text(from_outside, server).unwrap(), in_cluster);
        assert_eq!(text(json!({"dnsPolicy": "Default"}), server), None);
        assert_eq!(text(json!({"hostNetwork": true}), server), None);
        assert_eq!(text(json!({}), None), None);
        let more = json!({"nameservers": ["10.0.0.1"], "searches": ["own"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]});
        let own = text(json!({"dnsPolicy": "None", "dnsConfig": more}), server).unwrap();
        assert_eq!(own, "nameserver 10.0.0.1\nsearch own\noptions ndots:2 edns0\n");
        let both = text(json!({"dnsPolicy": "Default", "dnsConfig": more}), server).unwrap();
        let expected =
            "nameserver 192.0.2.1\nnameserver 10.0.0.1\nsearch example.org own\noptions rotate ndots:2 edns0\n";
        assert_eq!(both, expected);
    }
}
