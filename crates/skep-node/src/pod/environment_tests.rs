use serde_json::json;

use super::*;

fn place() -> Place {
    Place { pod_ip: Some([10, 244, 0, 7].into()), host_ip: [10, 244, 0, 1].into(), allocatable: BTreeMap::new() }
}

fn pod() -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "n", "annotations": {"generation": "3"}},
        "spec": {"containers": [{"name": "other", "resources": {"limits": {"cpu": "3"}}}]}}))
    .unwrap()
}

fn sources() -> Sources {
    let map = json!({"metadata": {"name": "settings"}, "data": {"COLOUR": "red", "SHAPE": "round"}});
    let secret = json!({"metadata": {"name": "keys"}, "data": {"TOKEN": "c2VjcmV0", "BINARY": "/w=="}});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    let mut text_only = secret.clone();
    text_only.data.as_mut().unwrap().remove("BINARY");
    Sources {
        config_maps: BTreeMap::from([("settings".to_owned(), serde_json::from_value(map).unwrap())]),
        secrets: BTreeMap::from([("keys".to_owned(), text_only), ("mixed".to_owned(), secret)]),
    }
}

fn built(container: serde_json::Value) -> Result<BTreeMap<String, String>, String> {
    let container: Container = serde_json::from_value(container).unwrap();
    let services = BTreeMap::from([("API_SERVICE_HOST".to_owned(), "10.96.0.9".to_owned())]);
    build(&pod(), &container, &sources(), services, &place()).map_err(|error| error.to_string())
}

#[test]
fn later_ones_win() {
    let environment = built(json!({"name": "c",
        "envFrom": [
            {"configMapRef": {"name": "settings"}},
            {"prefix": "P_", "secretRef": {"name": "keys"}},
            {"configMapRef": {"name": "absent", "optional": true}}],
        "env": [
            {"name": "COLOUR", "value": "blue"},
            {"name": "TEXT", "value": "$(COLOUR) $(SHAPE) $(API_SERVICE_HOST) $(LATER)"},
            {"name": "LATER", "value": "x"},
            {"name": "EMPTY"},
            {"name": "GENERATION", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['generation']"}}},
            {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"containerName": "other", "resource": "limits.cpu"}}},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "TOKEN"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "absent", "optional": true}}}]}))
    .unwrap();
    let expected = [
        ("API_SERVICE_HOST", "10.96.0.9"),
        ("COLOUR", "blue"),
        ("CPUS", "3"),
        ("EMPTY", ""),
        ("GENERATION", "3"),
        ("KEY", "secret"),
        ("LATER", "x"),
        ("P_TOKEN", "secret"),
        ("SHAPE", "round"),
        ("TEXT", "blue round 10.96.0.9 $(LATER)"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(environment, BTreeMap::from(expected));
}

#[test]
fn what_is_missing_is_named() {
    let from = |source: serde_json::Value| json!({"name": "c", "env": [{"name": "X", "valueFrom": source}]});
    let table = [
        (json!({"name": "c", "envFrom": [{"configMapRef": {"name": "absent"}}]}), "configmap \"absent\" not found"),
        (json!({"name": "c", "envFrom": [{"secretRef": {"name": "absent"}}]}), "secret \"absent\" not found"),
        (from(json!({"configMapKeyRef": {"name": "absent", "key": "k"}})), "configmap \"absent\" not found"),
        (from(json!({"secretKeyRef": {"name": "absent", "key": "k"}})), "secret \"absent\" not found"),
        (
            from(json!({"configMapKeyRef": {"name": "settings", "key": "k"}})),
            "couldn't find key k in ConfigMap n/settings",
        ),
        (from(json!({"secretKeyRef": {"name": "keys", "key": "k"}})), "couldn't find key k in Secret n/keys"),
        (from(json!({"fieldRef": {"fieldPath": "spec.nonsense"}})), "unsupported fieldPath: spec.nonsense"),
        (
            from(json!({"secretKeyRef": {"name": "mixed", "key": "BINARY"}})),
            "secret \"mixed\" has a value for \"BINARY\" that is not text",
        ),
    ];
    for (container, expected) in table {
        assert_eq!(built(container.clone()).unwrap_err(), expected, "{container}");
    }
}

#[test]
fn references_are_collected() {
    let container = json!({"name": "c",
        "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}],
        "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "d", "key": "k"}}}]});
    let (config_maps, secrets) = references(&serde_json::from_value(container).unwrap());
    assert_eq!(config_maps, BTreeSet::from(["a".to_owned(), "c".to_owned()]));
    assert_eq!(secrets, BTreeSet::from(["b".to_owned(), "d".to_owned()]));
}

#[test]
fn services_tell_their_address() {
    let service = |namespace: &str, name: &str, address: &str| -> Service {
        serde_json::from_value(
            json!({"metadata": {"namespace": namespace, "name": name}, "spec": {"clusterIP": address,
            "ports": [{"name": "web-ui", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]}}),
        )
        .unwrap()
    };
    let services = [
        service("default", "kubernetes", "10.96.0.1"),
        service("n", "my-app", "10.96.0.9"),
        service("n", "headless", "None"),
        service("other", "far", "10.96.0.8"),
    ];
    let without = service_variables(&services, "n", false);
    assert_eq!(without["KUBERNETES_SERVICE_HOST"], "10.96.0.1");
    assert!(!without.contains_key("MY_APP_SERVICE_HOST"));
    let with = service_variables(&services, "n", true);
    let expected = [
        ("MY_APP_PORT", "tcp://10.96.0.9:80"),
        ("MY_APP_PORT_53_UDP", "udp://10.96.0.9:53"),
        ("MY_APP_PORT_53_UDP_ADDR", "10.96.0.9"),
        ("MY_APP_PORT_53_UDP_PORT", "53"),
        ("MY_APP_PORT_53_UDP_PROTO", "udp"),
        ("MY_APP_PORT_80_TCP", "tcp://10.96.0.9:80"),
        ("MY_APP_PORT_80_TCP_ADDR", "10.96.0.9"),
        ("MY_APP_PORT_80_TCP_PORT", "80"),
        ("MY_APP_PORT_80_TCP_PROTO", "tcp"),
        ("MY_APP_SERVICE_HOST", "10.96.0.9"),
        ("MY_APP_SERVICE_PORT", "80"),
        ("MY_APP_SERVICE_PORT_DNS", "53"),
        ("MY_APP_SERVICE_PORT_WEB_UI", "80"),
    ];
    let own: Vec<_> = with.iter().filter(|(name, _)| name.starts_with("MY_APP")).collect();
    assert_eq!(own.len(), expected.len());
    for (name, value) in expected {
        assert_eq!(with[name], value, "{name}");
    }
    assert!(!with.keys().any(|name| name.starts_with("HEADLESS") || name.starts_with("FAR")));
}
