//! Names that cannot be, and templates that are none.

use serde_json::{Value, json};

use super::{option, sample};
use crate::proxy::pod::samples::Sample;
use crate::proxy::pod::{deployment, parse_pod_template};
use crate::proxy::{check_names, check_volumes};

#[test]
fn names_that_cannot_be_are_told() {
    let check = |sample: &Sample| sample.with_inputs(|inputs| check_names(inputs).and_then(|()| check_volumes(inputs)));
    let named = |remote, name: &str| Sample::new(remote, name);
    let long = |length: usize| "x".repeat(length);
    for (sample, expected) in vec![
        (named(false, "github"), None),
        (named(true, "mcpserver"), None),
        (named(false, "mcpserver"), Some("is reserved")),
        (named(false, "a.b"), Some("without dots")),
        (named(false, &long(50)), None),
        (named(false, &long(51)), Some("headless Service leaves room for 50")),
        (named(false, &long(52)).with([option("stdio")]), None),
        (named(false, &long(53)).with([option("stdio")]), Some("StatefulSet leaves room for 52")),
        (named(true, &long(46)), None),
        (named(true, &long(47)), Some("Service leaves room for 46")),
    ] {
        let found = check(&sample);
        let fits = match (&found, expected) {
            (Ok(()), None) => true,
            (Err(text), Some(part)) => text.contains(part) && text.contains("create it again"),
            _ => false,
        };
        assert!(fits, "{}: {found:?}", sample.name);
    }
    for (volume, expected) in [
        (json!({"name": "runconfig", "hostPath": "/h", "mountPath": "/m"}), "is the name of a volume of the proxy"),
        (json!({"name": "my.data", "hostPath": "/h", "mountPath": "/m"}), "is no name for a volume"),
        (
            json!({"name": "data", "hostPath": "/h", "mountPath": "/etc/runconfig"}),
            "is where another volume is mounted",
        ),
        (
            json!({"name": "data", "hostPath": "/h", "mountPath": "/etc/runconfig/"}),
            "is where another volume is mounted",
        ),
    ] {
        let mut sample = sample(false, &[]);
        sample.spec["volumes"] = json!([volume]);
        let found = sample.with_inputs(check_volumes).unwrap_err();
        assert!(found.contains(expected) && found.starts_with("spec.volumes[0]."), "{found}");
    }
}

#[test]
fn a_template_that_is_none_is_told_with_its_place() {
    let parse = |remote, template: Value| {
        let mut sample = sample(remote, &[]);
        sample.spec["podTemplateSpec"] = template;
        sample.with_inputs(|inputs| parse_pod_template(inputs).map(|found| found.is_some()))
    };
    for remote in [false, true] {
        assert_eq!(parse(remote, Value::Null), Ok(false));
        assert_eq!(parse(remote, json!({"spec": {"containers": [{"name": "mcp"}], "newField": 1}})), Ok(true));
        for (template, place) in [
            (json!({"spec": {"containers": "none"}}), "spec.containers: "),
            (
                json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": "80"}]}]}}),
                "spec.containers[1].ports[0].containerPort: ",
            ),
            (json!({"metadata": {"labels": {"a": 1}}}), "metadata.labels.a: "),
        ] {
            let text = parse(remote, template).unwrap_err();
            assert!(text.starts_with(&format!("failed to unmarshal PodTemplateSpec: {place}")), "{text}");
        }
    }
    let text = parse(true, json!({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}})).unwrap_err();
    assert!(text.contains("spec.containers[0]: unknown directive $patch: merge"), "{text}");
    let text = parse(true, json!({"spec": {"containers": [{"image": "i"}]}})).unwrap_err();
    assert!(text.contains("spec.containers[0]: name is missing"), "{text}");
}

#[test]
fn a_template_that_no_program_can_be_given_is_told() {
    let build = |length: usize| {
        let mut sample = sample(false, &[]);
        sample.spec["podTemplateSpec"] = json!({"metadata": {"annotations": {"a": "x".repeat(length)}}});
        sample.with_inputs(|inputs| deployment(inputs, "c").map(drop))
    };
    assert!(build(100_000).is_ok());
    let told = build(140_000).unwrap_err().to_string();
    assert!(told.starts_with("spec.podTemplateSpec has 140") && told.contains("which can have 131071"), "{told}");
}
