//! What a pod asks for and does not get on this node. It runs all the same, and is told.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use super::prepare::capabilities;
use crate::container::groups_can_be_set;
use crate::isolation::Isolation;

/// What this node can do for pods, by the rights that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Powers {
    /// Containers have a world of their own.
    namespaces: bool,
    /// They can run as another user than Skep does. With namespaces they always can: an ordinary user is alone in them,
    /// but may have any number there.
    pub(super) users: bool,
    /// They can have further groups, which only root can give.
    groups: bool,
}

impl Powers {
    pub(super) fn of(isolation: Isolation) -> Self {
        let namespaces = isolation == Isolation::Namespaces;
        let users = namespaces || rustix::process::geteuid().is_root();
        Self { namespaces, users, groups: users && groups_can_be_set() }
    }
}

/// Everything of the kind, each as the path of the field and the reason.
pub(super) fn unhonoured(pod: &Pod, powers: Powers) -> Vec<String> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut list = of_pod(spec, powers);
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        list.extend(of_container(container, powers).into_iter().map(|told| format!("{}: {told}", container.name)));
    }
    list
}

const NO_USER: &str = "securityContext.runAsUser (no rights to switch users)";
const NO_GROUP: &str = "securityContext.runAsGroup (no rights to switch users)";

fn of_pod(spec: &PodSpec, powers: Powers) -> Vec<String> {
    let security = spec.security_context.clone().unwrap_or_default();
    let plain = !powers.namespaces;
    let table = [
        (spec.host_pid == Some(true), "hostPID (containers see their own processes only)"),
        (spec.host_ipc == Some(true), "hostIPC"),
        (spec.share_process_namespace == Some(true), "shareProcessNamespace"),
        (spec.set_hostname_as_fqdn == Some(true), "setHostnameAsFQDN"),
        (spec.runtime_class_name.is_some(), "runtimeClassName (containers are processes of this machine)"),
        (security.sysctls.as_ref().is_some_and(|all| !all.is_empty()), "securityContext.sysctls"),
        (security.se_linux_options.is_some(), "securityContext.seLinuxOptions"),
        (security.app_armor_profile.is_some(), "securityContext.appArmorProfile"),
        (is_filtered(security.seccomp_profile.as_ref()), "securityContext.seccompProfile"),
        (!powers.users && security.run_as_user.is_some(), NO_USER),
        (!powers.users && security.run_as_group.is_some(), NO_GROUP),
        (
            !powers.groups && security.supplemental_groups.as_ref().is_some_and(|all| !all.is_empty()),
            "securityContext.supplementalGroups (only root can give further groups)",
        ),
        (
            !powers.groups && security.fs_group.is_some(),
            "securityContext.fsGroup (only root can give further groups; volumes belong to the user of the containers)",
        ),
        (plain && spec.host_aliases.as_ref().is_some_and(|all| !all.is_empty()), "hostAliases (no namespaces)"),
        (plain && spec.dns_config.is_some(), "dnsConfig (no namespaces)"),
    ];
    table.into_iter().filter(|(asked, _)| *asked).map(|(_, told)| told.to_owned()).collect()
}

fn of_container(container: &Container, powers: Powers) -> Vec<String> {
    let security = container.security_context.clone().unwrap_or_default();
    let plain = !powers.namespaces;
    let table = [
        (security.privileged == Some(true), "securityContext.privileged"),
        (security.se_linux_options.is_some(), "securityContext.seLinuxOptions"),
        (security.app_armor_profile.is_some(), "securityContext.appArmorProfile"),
        (is_filtered(security.seccomp_profile.as_ref()), "securityContext.seccompProfile"),
        (!powers.users && security.run_as_user.is_some(), NO_USER),
        (!powers.users && security.run_as_group.is_some(), NO_GROUP),
        (
            plain && security.read_only_root_filesystem == Some(true),
            "securityContext.readOnlyRootFilesystem (no namespaces)",
        ),
        (container.volume_devices.as_ref().is_some_and(|all| !all.is_empty()), "volumeDevices"),
        (
            container.ports.iter().flatten().any(|port| port.host_port.is_some_and(|port| port > 0)),
            "hostPort (use a Service)",
        ),
    ];
    let mut list: Vec<String> =
        table.into_iter().filter(|(asked, _)| *asked).map(|(_, told)| told.to_owned()).collect();
    let (_, refused) = capabilities(container);
    if !refused.is_empty() {
        list.push(format!("securityContext.capabilities.add {}", refused.join(", ")));
    }
    let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let limits: Vec<&str> = limits.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    if !limits.is_empty() {
        list.push(format!("resources.limits {} (this node does not limit processes)", limits.join(", ")));
    }
    list
}

fn is_filtered(profile: Option<&k8s_openapi::api::core::v1::SeccompProfile>) -> bool {
    profile.is_some_and(|profile| profile.type_ != "Unconfined")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROOT: Powers = Powers { namespaces: true, users: true, groups: true };

    fn told(powers: Powers, spec: &serde_json::Value) -> Vec<String> {
        unhonoured(&serde_json::from_value(json!({"spec": spec})).unwrap(), powers)
    }

    #[test]
    fn what_is_honoured_is_not_told() {
        let security = json!({"runAsUser": 5, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}});
        let spec = json!({"securityContext": {"fsGroup": 7, "runAsNonRoot": true}, "containers": [
            {"name": "c", "securityContext": security, "resources": {"requests": {"cpu": "1"}}}]});
        assert_eq!(told(ROOT, &spec), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_is_named_with_its_container() {
        let spec = json!({"hostPID": true, "containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 2}],
            "securityContext": {"privileged": true, "capabilities": {"add": ["SYS_ADMIN"]}},
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]});
        let told = told(ROOT, &spec).join("; ");
        for part in ["hostPID", "c: securityContext.privileged", "c: hostPort", "add SYS_ADMIN", "limits cpu, memory"] {
            assert!(told.contains(part), "{part} in {told}");
        }
    }

    #[test]
    fn what_only_root_can_give_is_told_to_others() {
        let spec = json!({"containers": [], "dnsConfig": {"searches": ["a"]}, "securityContext": {
            "runAsUser": 1, "runAsGroup": 2, "supplementalGroups": [3], "fsGroup": 4}});
        let fields = |powers: Powers| {
            let told = told(powers, &spec);
            told.iter().map(|told| told.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let groups = ["securityContext.supplementalGroups", "securityContext.fsGroup"];
        assert_eq!(fields(ROOT), Vec::<String>::new());
        assert_eq!(fields(Powers { groups: false, ..ROOT }), groups);
        let users = ["securityContext.runAsUser", "securityContext.runAsGroup"];
        let nobody = Powers { namespaces: false, users: false, groups: false };
        assert_eq!(fields(nobody), [&users[..], &groups, &["dnsConfig"]].concat());
    }
}
