//! What the real server (v1.36) answered to each selector.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::status::{ApiError, ResourceName};

const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
    regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// The objects that the selectors were tried on.
fn selected(selector: &str) -> Vec<&'static str> {
    let selector = LabelSelector::parse(selector).unwrap_or_else(|error| panic!("{selector:?}: {error}"));
    let objects: [(&str, &[(&str, &str)]); 5] = [
        ("cm", &[]),
        ("l0", &[("a", "b")]),
        ("l1", &[("a", "c"), ("n", "5")]),
        ("l2", &[("n", "10"), ("x.io/y", "z")]),
        ("l3", &[("a", "")]),
    ];
    let owned = |labels: &[(&str, &str)]| -> Vec<(String, String)> {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    objects.iter().filter(|(_, labels)| selector.matches(&owned(labels))).map(|(name, _)| *name).collect()
}

#[test]
fn label_selectors_that_are_fine() {
    let table: &[(&str, &[&str])] = &[
        ("a=b", &["l0"]),
        ("a==b", &["l0"]),
        ("a!=b", &["cm", "l1", "l2", "l3"]),
        ("a in (b,c)", &["l0", "l1"]),
        ("a notin (b)", &["cm", "l1", "l2", "l3"]),
        ("a", &["l0", "l1", "l3"]),
        ("!a", &["cm", "l2"]),
        ("n>5", &["l2"]),
        ("n > 5", &["l2"]),
        ("n<6", &["l1"]),
        ("n<5,a", &[]),
        ("a=", &["l3"]),
        ("a!=", &["cm", "l0", "l1", "l2"]),
        ("a in ()", &["l3"]),
        ("a in (,b)", &["l0", "l3"]),
        ("a in (b,)", &["l0", "l3"]),
        ("", &["cm", "l0", "l1", "l2", "l3"]),
        ("  ", &["cm", "l0", "l1", "l2", "l3"]),
        ("x.io/y=z", &["l2"]),
        ("a notin (b,c),a", &["l3"]),
        ("a  in  ( b , c )", &["l0", "l1"]),
        ("in in (in)", &[]),
        ("!in", &["cm", "l0", "l1", "l2", "l3"]),
        ("a\t=\nb", &["l0"]),
        ("a=b,a=c", &[]),
        ("n>5,n<20", &["l2"]),
        ("a=,b=", &[]),
    ];
    for (selector, names) in table {
        assert_eq!(selected(selector), *names, "{selector:?}");
    }
}

#[test]
fn label_selectors_that_are_refused() {
    let operators = "expected: in, notin, =, ==, !=, gt, lt";
    let start = "expected: !, identifier, or 'end of string'";
    let table: Vec<(&str, String)> = vec![
        ("n>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer".into()),
        ("a in b", "unable to parse requirement: found 'b' expected: '('".into()),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".into()),
        ("a notin", "unable to parse requirement: found '' expected: '('".into()),
        (",", format!("found ',', {start}")),
        ("=b", format!("found '=', {start}")),
        ("(a)", format!("found '(', {start}")),
        ("a,", "found '', expected: identifier after ','".into()),
        ("a,,b", "found ',', expected: identifier after ','".into()),
        ("a b", format!("unable to parse requirement: found 'b', {operators}")),
        ("a!", format!("unable to parse requirement: found '!', {operators}")),
        ("a (b)", format!("unable to parse requirement: found '(', {operators}")),
        ("a=b=c", "found '=', expected: ',' or 'end of string'".into()),
        ("!a=b", "found '=', expected: ',' or 'end of string'".into()),
        ("a in (b))", "found ')', expected: ',' or 'end of string'".into()),
        ("!", "unable to parse requirement: found '', expected: identifier".into()),
        ("!!a", "unable to parse requirement: found '!', expected: identifier".into()),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier".into()),
        ("a===b", "unable to parse requirement: found '=', expected: identifier".into()),
        ("a=!=b", "unable to parse requirement: found '!=', expected: identifier".into()),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'".into()),
        ("a in (a,(b)", "unable to parse requirement: found '(', expected: ',', or identifier".into()),
        ("a in ((b))", "unable to parse requirement: found '(', expected: ',', ')' or identifier".into()),
        ("x.io/=z", format!("unable to parse requirement: <nil>: Invalid value: \"x.io/\": name part must be non-empty; {NAME}")),
        ("/y=z", "unable to parse requirement: <nil>: Invalid value: \"/y\": prefix part must be non-empty".into()),
        ("a\\=b", format!("unable to parse requirement: <nil>: Invalid value: \"a\\\\\": {NAME}")),
        ("é=b", format!("unable to parse requirement: <nil>: Invalid value: \"é\": {NAME}")),
        ("-a=-b", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": {NAME}")),
        ("a=-b", format!("unable to parse requirement: values[0][a]: Invalid value: \"-b\": {VALUE}")),
        ("a in (b,-c)", format!("unable to parse requirement: values[0][a]: Invalid value: \"-c\": {VALUE}")),
        ("a in (-b,-b)", format!("unable to parse requirement: values[0][a]: Invalid value: \"-b\": {VALUE}")),
        ("a in (-b,-c)", format!("unable to parse requirement: [values[0][a]: Invalid value: \"-b\": {VALUE}, values[1][a]: Invalid value: \"-c\": {VALUE}]")),
        ("a>-x", format!("unable to parse requirement: [values[0]: Invalid value: \"-x\": for 'Gt', 'Lt' operators, the value must be an integer, values[0][a]: Invalid value: \"-x\": {VALUE}]")),
    ];
    for (selector, message) in table {
        assert_eq!(LabelSelector::parse(selector).unwrap_err().to_string(), message, "{selector:?}");
    }
}

#[test]
fn label_selectors_of_objects() {
    let object = json!({
        "matchLabels": { "z": "1", "b": "2" },
        "matchExpressions": [
            { "key": "c", "operator": "In", "values": ["y", "x"] },
            { "key": "b", "operator": "In", "values": ["2"] },
            { "key": "d", "operator": "NotIn", "values": ["q"] },
            { "key": "e", "operator": "DoesNotExist" },
            { "key": "a", "operator": "Exists" },
            { "key": "c", "operator": "In", "values": ["x", "x"] },
        ],
    });
    let selector = LabelSelector::from_object(&object).unwrap();
    // As the scale subresource of a Deployment with this selector shows it.
    assert_eq!(selector.to_string(), "a,b=2,b in (2),c in (x,y),c in (x,x),d notin (q),!e,z=1");
    assert!(selector.matches_object(&json!({ "metadata": { "labels": { "z": "1", "b": "2", "c": "x", "a": "1" } } })));
    assert!(!selector.matches_object(&json!({ "metadata": {} })));
    assert!(LabelSelector::from_object(&json!({})).unwrap().matches(&[]));
    assert!(!LabelSelector::from_object(&json!(null)).unwrap().matches(&[]));
}

#[test]
fn label_selectors_of_objects_that_are_refused() {
    let selector = json!({
        "matchLabels": { "-a": "-b" },
        "matchExpressions": [
            { "key": "a", "operator": "In" },
            { "key": "b", "operator": "Exists", "values": ["x"] },
            { "key": "-", "operator": "Foo", "values": ["-"] },
            { "key": "z", "operator": "In", "values": ["-q"] },
        ],
    });
    let errors = validate_label_selector(&selector, "spec.selector");
    let message = ApiError::invalid(&ResourceName::new("apps", "Deployment"), "x", &errors).message;
    assert_eq!(
        message,
        format!(
            "Deployment.apps \"x\" is invalid: [spec.selector.matchLabels: Invalid value: \"-a\": {NAME}, \
             spec.selector.matchLabels: Invalid value: \"-b\": {VALUE}, \
             spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn', \
             spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist', \
             spec.selector.matchExpressions[2].operator: Invalid value: \"Foo\": not a valid selector operator, \
             spec.selector.matchExpressions[2].key: Invalid value: \"-\": {NAME}, \
             spec.selector.matchExpressions[2].values[0]: Invalid value: \"-\": {VALUE}, \
             spec.selector.matchExpressions[3].values[0]: Invalid value: \"-q\": {VALUE}]"
        )
    );
    assert!(LabelSelector::from_object(&selector).is_err());
    for expression in selector["matchExpressions"].as_array().unwrap() {
        assert!(LabelSelector::from_object(&json!({ "matchExpressions": [expression] })).is_err(), "{expression}");
    }
}

fn field_answer(group: &str, resource: &str, selector: &str) -> Result<FieldSelector, String> {
    let support = FieldSupport::built_in(group, resource);
    FieldSelector::parse(selector).and_then(|selector| selector.check(&support)).map_err(|error| error.to_string())
}

#[test]
fn field_selectors_that_are_refused() {
    let only = |field: &str| {
        format!("\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    };
    let table = [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'".to_owned()),
        ("  ", "invalid selector: '  '; can't understand '  '".to_owned()),
        (
            "foo=bar,metadata.name",
            "invalid selector: 'foo=bar,metadata.name'; can't understand 'metadata.name'".to_owned(),
        ),
        ("metadata.name=c\\m", "invalid field selector: invalid escape sequence: \\m".to_owned()),
        ("metadata.name=cm\\", "invalid field selector: invalid escape sequence: \\".to_owned()),
        ("metadata.name=c=m", "invalid field selector: unescaped character in value: 61".to_owned()),
        ("metadata.name=c!=m", "invalid field selector: unescaped character in value: 61".to_owned()),
        ("foo=bar", only("foo")),
        ("metadata.name =cm", only("metadata.name ")),
        ("=x", only("")),
        ("!=x", only("")),
    ];
    for (selector, message) in table {
        assert_eq!(field_answer("", "configmaps", selector), Err(message), "{selector}");
    }
    for (group, resource, field) in [
        ("", "pods", "status.hostIP"),
        ("", "events", "source.component"),
        ("", "events", "regarding.name"),
        ("events.k8s.io", "events", "involvedObject.kind"),
        ("events.k8s.io", "events", "source"),
        ("", "nodes", "metadata.namespace"),
        ("", "namespaces", "name"),
    ] {
        let answer = field_answer(group, resource, &format!("{field}=x"));
        assert_eq!(answer, Err(format!("field label not supported: {field}")));
    }
    assert_eq!(field_answer("apps", "replicasets", "status.replicas=0"), Err(only("status.replicas")));
    let custom = FieldSupport::custom([".spec.color"]);
    let error = FieldSelector::parse("x=y").unwrap().check(&custom).unwrap_err();
    assert_eq!(error.to_string(), "field label not supported: x");
}

#[test]
fn field_selectors_that_are_fine() {
    for selector in
        ["", ",", "=", "metadata.name=cm,", "metadata.name=c\\,m", "metadata.name=c\\=m", "metadata.name=c>m"]
    {
        assert!(field_answer("", "configmaps", selector).is_ok(), "{selector}");
    }
    let pod = json!({ "metadata": { "name": "pod", "namespace": "default" }, "spec": { "serviceAccountName": "default" },
                      "status": { "phase": "Pending" } });
    let support = FieldSupport::built_in("", "pods");
    for (selector, selected) in [
        ("metadata.name=pod", true),
        ("metadata.name!=pod", false),
        ("metadata.name=pod,metadata.namespace=x", false),
        ("spec.nodeName=", true),
        ("spec.host=", true),
        ("spec.hostNetwork=false", true),
        ("spec.hostNetwork=", false),
        ("status.phase==Pending", true),
        ("status.podIP=", true),
    ] {
        let checked = FieldSelector::parse(selector).unwrap().check(&support).unwrap();
        assert_eq!(checked.matches(&pod, &support), selected, "{selector}");
    }
    let custom = FieldSupport::custom([".spec.color", ".spec.count", ".spec.on"]);
    let thing = json!({ "metadata": { "name": "t" }, "spec": { "color": "red", "count": 3, "on": true } });
    for (selector, selected) in
        [("spec.color=red", true), ("spec.color!=red", false), ("spec.count=3", true), ("spec.on=true", true)]
    {
        let checked = FieldSelector::parse(selector).unwrap().check(&custom).unwrap();
        assert_eq!(checked.matches(&thing, &custom), selected, "{selector}");
    }
    assert_eq!(FieldSelector::parse("metadata.name=cm,a!=b").unwrap().name(), Some("cm"));
}

fn label_selectors() -> impl Strategy<Value = String> {
    let key = "([a-z]{1,3}\\.io/)?[A-Za-z]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?";
    let value = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,4}[A-Za-z0-9])?)?";
    let values = prop::collection::vec(value, 0..4).prop_map(|values| values.join(","));
    let requirement = prop_oneof![
        key.prop_map(|key| key),
        key.prop_map(|key| format!("!{key}")),
        (key, prop::sample::select(vec!["=", "==", "!="]), value)
            .prop_map(|(key, sign, value)| format!("{key}{sign}{value}")),
        (key, prop::sample::select(vec![">", "<"]), 0..100_u32)
            .prop_map(|(key, sign, value)| format!("{key}{sign}{value}")),
        (key, prop::sample::select(vec!["in", "notin"]), values)
            .prop_map(|(key, word, values)| format!("{key} {word} ({values})")),
    ];
    prop::collection::vec(requirement, 0..5).prop_map(|requirements| requirements.join(","))
}

proptest! {
    #[test]
    fn printed_label_selectors_are_read_back(text in label_selectors()) {
        let selector = LabelSelector::parse(&text).unwrap();
        prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn printed_field_selectors_are_read_back(pairs in prop::collection::vec(("[a-z.]{1,8}", any::<bool>(), "[a-z,=\\\\! ]{0,6}"), 0..4)) {
        let escape = |value: &str| value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        let parts: Vec<String> = pairs.iter()
            .map(|(field, equal, value)| format!("{field}{}{}", if *equal { "=" } else { "!=" }, escape(value))).collect();
        let selector = FieldSelector::parse(&parts.join(",")).unwrap();
        prop_assert_eq!(selector.requirements().len(), pairs.len());
        for (requirement, (field, _, value)) in selector.requirements().iter().zip(&pairs) {
            prop_assert_eq!((&requirement.field, &requirement.value), (field, value));
        }
        prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn no_text_brings_them_down(text in "\\PC{0,40}", ascii in "[a-c!=<>(), \\\\intoé\\t]{0,30}") {
        for text in [text, ascii] {
            if let Ok(selector) = LabelSelector::parse(&text) {
                prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
            }
            if let Ok(selector) = FieldSelector::parse(&text) {
                let _ = selector.check(&FieldSupport::built_in("", "pods"));
            }
        }
    }
}
