use serde_json::{Value, json};

use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::super::HEADLESS;
use super::super::slices::{self, MANAGED_BY, Plan, SERVICE_NAME};
use super::*;

#[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
fn service(overlay: Value) -> Service {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "s", "labels": {"l": "m"}},
        "spec": {"selector": {"app": "web"}, "clusterIP": "10.0.0.1",
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}]},
    });
    json_patch::merge(&mut value, &overlay);
    serde_json::from_value(value).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
fn pod(number: usize, overlay: Value) -> Arc<Pod> {
    let mut value = json!({
        "metadata": {"name": format!("web-{number}"), "namespace": "n", "uid": format!("p{number}"),
            "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {"phase": "Running", "podIP": format!("10.1.{}.{}", number / 200, number % 200 + 1),
            "conditions": [{"type": "Ready", "status": "True"}]},
    });
    json_patch::merge(&mut value, &overlay);
    Arc::new(serde_json::from_value(value).unwrap())
}

/// All nodes are in zone `a`, and `gone` is none of them.
fn plan(service: &Service, pods: &[Arc<Pod>], existing: &[Arc<EndpointSlice>]) -> Plan {
    let node = |name: &str| {
        let node = json!({"metadata": {"name": name, "labels": {ZONE: "a"}}});
        (name != "gone").then(|| Arc::new(serde_json::from_value(node).unwrap()))
    };
    slices::plan(&source(service), groups(service, pods, node), existing)
}

fn pods(count: usize) -> Vec<Arc<Pod>> {
    (0..count).map(|number| pod(number, json!({}))).collect()
}

/// The slices as the server would have them afterwards.
fn applied(existing: &[Arc<EndpointSlice>], plan: Plan) -> Vec<Arc<EndpointSlice>> {
    let Plan { create, update, delete } = plan;
    let mut slices: Vec<_> = existing.to_vec();
    slices.retain(|slice| !delete.iter().any(|gone| gone.metadata.name == slice.metadata.name));
    for changed in update {
        slices.retain(|slice| slice.metadata.name != changed.metadata.name);
        slices.push(Arc::new(changed));
    }
    for mut new in create {
        new.metadata.name = Some(format!("web-{}", slices.len()));
        slices.push(Arc::new(new));
    }
    slices
}

fn sizes(slices: &[Arc<EndpointSlice>]) -> Vec<usize> {
    let mut sizes: Vec<_> = slices.iter().map(|slice| slice.endpoints.iter().flatten().count()).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn conditions_follow_the_pod() {
    let unready = json!({"status": {"conditions": null}});
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let published = json!({"spec": {"publishNotReadyAddresses": true}});
    let table = [
        (json!({}), json!({}), Some([true, true, false])),
        (json!({}), unready.clone(), Some([false, false, false])),
        (json!({}), leaving.clone(), Some([false, true, true])),
        (published.clone(), unready, Some([true, false, false])),
        (published, leaving, Some([true, true, true])),
        (json!({}), json!({"status": {"phase": "Succeeded"}}), None),
        (json!({}), json!({"status": {"podIP": null}}), None),
        (json!({}), json!({"spec": {"nodeName": "gone"}}), None),
    ];
    for (of_service, of_pod, expected) in table {
        let plan = plan(&service(of_service.clone()), &[pod(1, of_pod.clone())], &[]);
        let endpoints = plan.create[0].endpoints.clone().unwrap();
        let found = endpoints.first().and_then(|endpoint| endpoint.conditions.clone());
        let found = found.map(|found| [found.ready, found.serving, found.terminating].map(Option::unwrap));
        assert_eq!(found, expected, "{of_service} {of_pod}");
    }
}

#[test]
fn a_new_slice_is_labelled_and_owned() {
    let plan = plan(&service(json!({"spec": {"clusterIP": "None"}})), &pods(1), &[]);
    let slice = serde_json::to_value(&plan.create[0]).unwrap();
    let labels = json!({"l": "m", SERVICE_NAME: "web", MANAGED_BY: MANAGER, HEADLESS: ""});
    assert_eq!(slice["metadata"]["labels"], labels);
    assert_eq!(slice["metadata"]["generateName"], "web-");
    assert_eq!(slice["metadata"]["ownerReferences"][0]["uid"], "s");
    assert_eq!(slice["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    assert_eq!(
        slice["endpoints"][0]["targetRef"],
        json!({"kind": "Pod", "namespace": "n", "name": "web-0", "uid": "p0"})
    );
    assert_eq!((&slice["endpoints"][0]["nodeName"], &slice["endpoints"][0]["zone"]), (&json!("n1"), &json!("a")));
}

#[test]
fn slices_hold_a_hundred_and_change_little() {
    let service = service(json!({}));
    let empty = applied(&[], plan(&service, &[], &[]));
    assert_eq!(sizes(&empty), [0]);
    let first = plan(&service, &pods(250), &empty);
    assert_eq!((first.create.len(), first.update.len(), first.delete.len()), (2, 1, 0), "the empty one is used");
    let full = applied(&empty, first);
    assert_eq!(sizes(&full), [50, 100, 100]);
    let rest = plan(&service, &pods(250), &full);
    assert_eq!((rest.create.len(), rest.update.len(), rest.delete.len()), (0, 0, 0), "nothing to write at rest");
    let one_more = plan(&service, &pods(251), &full);
    assert_eq!((one_more.create.len(), one_more.update.len()), (0, 1));
    let mut changed = pods(250);
    changed[7] = pod(7, json!({"status": {"conditions": null}}));
    assert_eq!(plan(&service, &changed, &full).update.len(), 1, "only its own slice");
    let none = applied(&full, plan(&service, &[], &full));
    assert_eq!(sizes(&none), [0]);
}

#[test]
fn pods_that_name_the_port_differently_are_in_other_slices() {
    let other = json!({"spec": {"containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 9090}]}]}});
    let plan = plan(&service(json!({})), &[pod(0, json!({})), pod(1, other)], &[]);
    let ports: Vec<_> = plan.create.iter().map(|slice| slice.ports.as_ref().unwrap()[0].port).collect();
    assert_eq!(ports, [Some(8080), Some(9090)]);
}
