//! The pod of an ordinal: its name, labels, host name and volumes.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume};

use super::super::ownership::controller_reference;
use super::super::pods;
use super::claims::claim_name;

const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
pub(super) const REVISION_LABEL: &str = "controller-revision-hash";

/// The number in the name of a pod of this set.
pub(super) fn ordinal(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let canonical = digits == "0" || !digits.starts_with('0');
    (canonical && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

/// The ordinals that a set wants.
pub(super) fn wanted_ordinals(set: &StatefulSet) -> std::ops::Range<i32> {
    let spec = set.spec.as_ref();
    let start = spec.and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or(0);
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1).max(0);
    start..start.saturating_add(replicas)
}

pub(super) fn revision_of(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(REVISION_LABEL).map(String::as_str)
}

/// A new pod of a revision.
pub(super) fn new_pod(set: &StatefulSet, ordinal: i32, revision: &str, template: &PodTemplateSpec) -> Pod {
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let set_name = set.metadata.name.as_deref().unwrap_or_default();
    let mut pod = pods::from_template(template, namespace, controller_reference(set));
    let name = format!("{set_name}-{ordinal}");
    pod.metadata.name = Some(name.clone());
    pod.metadata.generate_name = Some(format!("{set_name}-"));
    pod.metadata.labels.get_or_insert_default().insert(REVISION_LABEL.into(), revision.to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = set.spec.as_ref().and_then(|spec| spec.service_name.clone()).filter(|name| !name.is_empty());
    identify(set, ordinal, &mut pod);
    pod
}

/// The pod as its identity wants it, if somebody has changed what can be changed back.
pub(super) fn repaired(ordinal: i32, pod: &Pod) -> Option<Pod> {
    let mut wanted = pod.clone();
    let labels = wanted.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME_LABEL.into(), pod.metadata.name.clone().unwrap_or_default());
    labels.insert(POD_INDEX_LABEL.into(), ordinal.to_string());
    (wanted != *pod).then_some(wanted)
}

fn identify(set: &StatefulSet, ordinal: i32, pod: &mut Pod) {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME_LABEL.into(), name.clone());
    labels.insert(POD_INDEX_LABEL.into(), ordinal.to_string());
    let templates = set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_deref()).unwrap_or_default();
    let volumes = pod.spec.get_or_insert_default().volumes.get_or_insert_default();
    for template in templates {
        let template = template.metadata.name.clone().unwrap_or_default();
        // A claim takes the place of a volume of the same name.
        volumes.retain(|volume| volume.name != template);
        volumes.push(Volume {
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(&template, &name),
                read_only: None,
            }),
            name: template,
            ..Volume::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ordinals_are_read_from_names() {
        let table = [
            ("web-0", Some(0)),
            ("web-12", Some(12)),
            ("web-01", None),
            ("web-", None),
            ("web-+1", None),
            ("webb-1", None),
            ("web-a-1", None),
            ("web-99999999999", None),
        ];
        for (pod, expected) in table {
            assert_eq!(ordinal("web", pod), expected, "{pod}");
        }
    }

    #[test]
    fn a_pod_has_a_stable_identity() {
        let set: StatefulSet = serde_json::from_value(json!({
            "metadata": {"name": "db", "namespace": "n", "uid": "u"},
            "spec": {"serviceName": "peers", "selector": {}, "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [], "volumes": [{"name": "data", "emptyDir": {}}, {"name": "more"}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
        }))
        .unwrap();
        let pod = new_pod(&set, 3, "db-abc", &set.spec.as_ref().unwrap().template);
        let labels = json!({"app": "db", POD_NAME_LABEL: "db-3", POD_INDEX_LABEL: "3", REVISION_LABEL: "db-abc"});
        assert_eq!(serde_json::to_value(&pod.metadata.labels).unwrap(), labels);
        let spec = json!({"containers": [], "hostname": "db-3", "subdomain": "peers", "volumes": [
            {"name": "more"}, {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-3"}}]});
        assert_eq!(serde_json::to_value(&pod.spec).unwrap(), spec);
        assert!(repaired(3, &pod).is_none());
    }
}
