use serde_json::json;

use skep_api::crd;

use super::*;

/// The additions that the project decided on. Everything else must be equal.
const DECIDED: [(&str, &[&str]); 8] = [
    ("MCPAuthzConfig", CONFIG_KIND),
    ("MCPExternalAuthConfig", CONFIG_KIND),
    ("MCPOIDCConfig", CONFIG_KIND),
    ("MCPTelemetryConfig", CONFIG_KIND),
    ("MCPToolConfig", CONFIG_KIND),
    ("MCPWebhookConfig", CONFIG_KIND),
    ("MCPServer", &["subresource scale", "status.selector"]),
    ("VirtualMCPServer", &["subresource scale", "status.readyReplicas", "status.selector"]),
];
const CONFIG_KIND: &[&str] = &["column Refs", "status.referenceCount", "status.referencingWorkloads"];

#[test]
fn our_crds_differ_from_the_reference_only_in_the_decided_additions() {
    let folder = workspace::root().join("../shared/compat/crds");
    if !folder.is_dir() {
        skep_conformance::skip::skip("crd-diff", "the reference CRDs are not beside this clone");
        return;
    }
    let mut ours = Definitions::new();
    for entry in crd::ALL {
        collect(entry.document(), &mut ours).unwrap();
    }
    let found: BTreeSet<String> = between(&read_folder(&folder).unwrap(), &ours)
        .into_iter()
        .map(|difference| {
            assert!(difference.is_optional_addition(), "{difference}");
            difference.place
        })
        .collect();
    let mut expected = BTreeSet::new();
    for (kind, places) in DECIDED {
        let versions: &[&str] = if kind == "MCPWebhookConfig" { &["v1alpha1"] } else { &["v1alpha1", "v1beta1"] };
        for version in versions {
            expected.extend(places.iter().map(|place| format!("{kind} {version} {place}")));
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn lists_are_taken_apart_and_a_second_definition_of_a_name_is_refused() {
    let list = json!({ "kind": "List", "items": [crd::ALL[0].document(), { "kind": "Pod" }, crd::ALL[1].document()] });
    let mut definitions = Definitions::new();
    collect(list.clone(), &mut definitions).unwrap();
    assert_eq!(definitions.len(), 2);
    assert!(collect(list, &mut definitions).is_err());
}

fn differences(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let theirs = crd::ALL[0].document();
    let mut ours = theirs.clone();
    change(&mut ours);
    let mut report = Report::default();
    compare_definitions("K", &theirs, &ours, &mut report);
    report.0.iter().map(ToString::to_string).collect()
}

fn schema_of(definition: &mut Value) -> &mut Value {
    definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties").unwrap()
}

#[test]
fn equal_definitions_have_no_differences_whatever_their_descriptions_say() {
    assert_eq!(differences(|ours| schema_of(ours)["spec"]["description"] = "other words".into()), [""; 0]);
}

#[test]
fn every_kind_of_difference_is_seen() {
    type Edit = fn(&mut Value);
    let cases: [(&str, Edit); 9] = [
        ("~ K v1alpha1 spec.image default", |ours| {
            schema_of(ours)["spec"]["properties"]["image"]["default"] = "x".into();
        }),
        ("+ K v1alpha1 spec.extra: string", |ours| {
            schema_of(ours)["spec"]["properties"]["extra"] = json!({"type": "string"});
        }),
        ("- K v1alpha1 spec.model: string", |ours| {
            schema_of(ours)["spec"]["properties"].as_object_mut().unwrap().remove("model");
        }),
        ("~ K v1alpha1 spec.port maximum", |ours| schema_of(ours)["spec"]["properties"]["port"]["maximum"] = 9.into()),
        ("~ K v1alpha1 spec.imagePullPolicy enum", |ours| {
            schema_of(ours)["spec"]["properties"]["imagePullPolicy"]["enum"] = json!(["Always"]);
        }),
        ("~ K v1alpha1 spec.env x-kubernetes-list-map-keys", |ours| {
            schema_of(ours)["spec"]["properties"]["env"]["x-kubernetes-list-map-keys"] = json!(["value"]);
        }),
        ("~ K v1alpha1 spec x-kubernetes-validations: absent", |ours| {
            schema_of(ours)["spec"]["x-kubernetes-validations"] = json!([{"rule": "true"}]);
        }),
        ("~ K v1alpha1 spec required: absent", |ours| schema_of(ours)["spec"]["required"] = json!(["model"])),
        ("~ K spec/names.shortNames", |ours| ours["spec"]["names"]["shortNames"] = json!(["x"])),
    ];
    for (expected, change) in cases {
        let found = differences(change);
        assert!(found.len() == 1 && found[0].starts_with(expected), "expected {expected}, found {found:?}");
    }
    assert!(differences(|ours| ours["spec"]["versions"][0]["served"] = false.into())[0].contains("served"));
    assert!(
        differences(|ours| ours["spec"]["versions"][0]["additionalPrinterColumns"][0]["name"] = "x".into())[0]
            .contains("columns")
    );
}
