use serde_json::{Value, json};

use super::*;

fn storage() -> Storage {
    Storage { class: "standard".into(), provisioner: "example.com/folder".into(), folder: "/data/volumes".into() }
}

#[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
fn claim(overlay: Value) -> PersistentVolumeClaim {
    let mut value = json!({
        "metadata": {"name": "c", "namespace": "n", "uid": "u"},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    });
    json_patch::merge(&mut value, &overlay);
    serde_json::from_value(value).unwrap()
}

fn volume(name: &str, size: &str, class: &str) -> PersistentVolume {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", "capacity": {"storage": size},
            "storageClassName": class, "persistentVolumeReclaimPolicy": "Retain"},
        "status": {"phase": "Available"},
    }))
    .unwrap()
}

#[test]
fn a_claim_is_bound_in_steps() {
    let storage = storage();
    let mut claim = claim(json!({}));
    let mut volumes: Vec<Arc<PersistentVolume>> = Vec::new();
    let mut steps = Vec::new();
    loop {
        assert!(steps.len() < 10, "{steps:?}");
        match claim_step(&claim, &volumes, &storage) {
            ClaimStep::Nothing => break,
            ClaimStep::Annotate(updated) => {
                steps.push("annotate");
                claim = *updated;
            }
            ClaimStep::Provision(volume) => {
                steps.push("provision");
                volumes.push(Arc::new(*volume));
            }
            ClaimStep::Bind(updated) => {
                steps.push("bind");
                claim = *updated;
            }
            ClaimStep::SetStatus(status) => {
                steps.push("status");
                claim.status = Some(*status);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(steps, ["annotate", "provision", "bind", "status"]);
    let spec = volumes[0].spec.clone().unwrap();
    assert_eq!(volumes[0].metadata.name.as_deref(), Some("pvc-u"));
    assert_eq!(spec.host_path.unwrap().path, "/data/volumes/pvc-u");
    assert_eq!(claim.spec.as_ref().unwrap().volume_name.as_deref(), Some("pvc-u"));
    let status = json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}});
    assert_eq!(serde_json::to_value(claim.status.unwrap()).unwrap(), status);
}

#[test]
fn the_smallest_volume_that_fits_is_taken() {
    let volumes: Vec<_> = [
        volume("other-class", "1Gi", "fast"),
        volume("large", "10Gi", "standard"),
        volume("fitting", "2Gi", "standard"),
        volume("small", "1Mi", "standard"),
    ]
    .into_iter()
    .map(Arc::new)
    .collect();
    let ClaimStep::Take(taken) = claim_step(&claim(json!({})), &volumes, &storage()) else { panic!("not taken") };
    assert_eq!(taken.metadata.name.as_deref(), Some("fitting"));
    assert_eq!(taken.spec.unwrap().claim_ref.unwrap().uid.as_deref(), Some("u"));
}

#[test]
fn other_classes_are_left_to_others() {
    let other = claim(json!({"spec": {"storageClassName": "fast"}}));
    assert!(matches!(claim_step(&other, &[], &storage()), ClaimStep::Nothing));
    let none = claim(json!({"spec": {"storageClassName": ""}}));
    assert!(matches!(claim_step(&none, &[], &storage()), ClaimStep::Wait { reason: "FailedBinding", .. }));
}

#[test]
fn only_our_own_folders_are_removed() {
    let table = [
        ("/data/volumes/pvc-u", "example.com/folder", VolumeStep::Reclaim(Some("/data/volumes/pvc-u".into()))),
        ("/data/volumes/../../etc", "example.com/folder", VolumeStep::Reclaim(None)),
        ("/etc", "example.com/folder", VolumeStep::Reclaim(None)),
        ("/data/volumes", "example.com/folder", VolumeStep::Reclaim(None)),
        ("/data/volumes/pvc-u", "somebody.else", VolumeStep::Nothing),
    ];
    for (path, provisioner, expected) in table {
        let mut released = volume("pvc-u", "1Gi", "standard");
        released.metadata.annotations = Some(BTreeMap::from([(PROVISIONED_BY.into(), provisioner.into())]));
        let spec = released.spec.as_mut().unwrap();
        spec.persistent_volume_reclaim_policy = Some("Delete".into());
        spec.claim_ref = Some(reference(&claim(json!({}))));
        spec.host_path = Some(HostPathVolumeSource { path: path.into(), type_: None });
        released.status.as_mut().unwrap().phase = Some("Released".into());
        assert_eq!(volume_step(&released, None, &storage(), Timestamp::now()), expected, "{path} {provisioner}");
    }
}

#[test]
fn a_retained_volume_stays_released() {
    let mut retained = volume("v", "1Gi", "standard");
    retained.spec.as_mut().unwrap().claim_ref = Some(reference(&claim(json!({}))));
    let VolumeStep::SetStatus(status) = volume_step(&retained, None, &storage(), Timestamp::now()) else {
        panic!("no status")
    };
    assert_eq!(status.phase.as_deref(), Some("Released"));
    retained.status = Some(*status);
    assert_eq!(volume_step(&retained, None, &storage(), Timestamp::now()), VolumeStep::Nothing);
}
