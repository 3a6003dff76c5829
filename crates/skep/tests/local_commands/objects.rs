//! Objects, for people without kubectl.

use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::here::{Here, LIMIT, Said, echo};
use skep_conformance::control_plane::binaries_or_skip;
use skep_conformance::ports::free_port;

fn config(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"colour": value}},
        "data": {"colour": value}})
}

#[test]
fn objects_are_applied_shown_and_deleted() {
    let here = Here::new();
    here.up(&["--no-demo"]);
    let red = here.manifest("red.json", &[config("one", "red"), config("two", "red")]);
    assert_eq!(here.done(&["apply", "-f", &red]), "configmap/one created\nconfigmap/two created\n");
    let blue = here.manifest("blue.json", &[config("one", "blue"), config("two", "red")]);
    assert_eq!(here.done(&["apply", "-f", &blue]), "configmap/one configured\nconfigmap/two unchanged\n");

    assert_eq!(here.done(&["get", "ConfigMap", "-l", "colour=blue", "-o", "name"]), "configmap/one\n");
    let one: Value = serde_json::from_str(&here.done(&["get", "cm", "one", "-o", "json"])).unwrap();
    assert_eq!((&one["kind"], &one["data"]["colour"]), (&json!("ConfigMap"), &json!("blue")));
    assert!(one["metadata"].get("managedFields").is_none() && one.get("items").is_none(), "{one:#}");
    let yaml: Value = serde_saphyr::from_str(&here.done(&["get", "configmaps", "-l", "colour", "-o", "yaml"])).unwrap();
    let names: Vec<&Value> = yaml["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!((&yaml["kind"], names), (&json!("List"), vec![&json!("one"), &json!("two")]));

    let table = here.done(&["get", "cm", "-A", "-l", "colour"]);
    let first: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(first, ["NAMESPACE", "NAME", "DATA", "AGE"]);
    assert_eq!(table.lines().nth(1).unwrap().split_whitespace().take(3).collect::<Vec<_>>(), ["default", "one", "1"]);

    assert_eq!(here.done(&["delete", "cm", "one", "two"]), "configmap/one deleted\nconfigmap/two deleted\n");
    let said = here.run(&["delete", "cm", "one"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(1), "error: configmaps \"one\" not found\n"));
    assert_eq!(here.done(&["delete", "-f", &red, "--ignore-not-found"]), "");
    let said = here.run(&["get", "cm", "-l", "colour"]);
    let expected = (Some(0), String::new(), "no configmaps found in the namespace default\n".to_owned());
    assert_eq!((said.code, said.stdout, said.stderr), expected);

    let said = here.run(&["apply", "-f", "/dev/null"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.starts_with("error: there is no manifest in /dev/null\nhint: "), "{said:?}");
    let said = here.run(&["logs", "deployment/"]);
    assert!(said.stderr.starts_with("error: \"deployment/\" names nothing\nhint: "), "{said:?}");

    let said = here.run(&["get", "deploymnts"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
    assert_eq!(said.stderr, "error: the server has no kind \"deploymnts\"\nhint: did you mean deployments?\n");
    let bad = here.manifest(
        "bad.json",
        &[json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "bad"}, "data": {"a": 1}})],
    );
    let said = here.run(&["apply", "-f", &bad]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.starts_with(&format!("error: cannot apply {bad}, document 1\n  caused by: ")), "{said:?}");
}

#[test]
fn what_is_missing_does_not_keep_the_rest_from_being_deleted() {
    let here = Here::new();
    here.up(&["--no-demo"]);
    let some = here.manifest("some.json", &[config("one", "red"), config("three", "red")]);
    here.done(&["apply", "-f", &some]);
    let unknown = json!({"apiVersion": "skep.dev/v1", "kind": "Nothing", "metadata": {"name": "none"}});
    let all = [config("one", "red"), config("two", "red"), unknown, config("three", "red"), config("four", "red")];
    let all = here.manifest("all.json", &all);
    let said = here.run(&["delete", "-f", &all]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), "configmap/three deleted\nconfigmap/one deleted\n"));
    let errors: Vec<&str> = said.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    let origin = format!("error: cannot delete what {all}, document 1 names");
    assert_eq!(
        errors,
        [origin.as_str(), "error: configmaps \"four\" not found", "error: configmaps \"two\" not found"],
        "{said:?}"
    );
    assert!(said.stderr.contains("caused by: the kind Nothing of skep.dev/v1 is not known"), "{said:?}");
    let said = here.run(&["delete", "cm", "one", "two"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
    assert_eq!(said.stderr, "error: configmaps \"one\" not found\nerror: configmaps \"two\" not found\n");
}

/// In whatever order they are written.
#[test]
fn what_pods_cannot_be_without_may_come_with_them() {
    let here = Here::new();
    let pod = |name: &str, spec: &Value| {
        let mut spec = spec.clone();
        spec["containers"] = json!([{"name": "main", "image": "skep-demo/echo"}]);
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    };
    let objects = [
        pod("worker", &json!({"serviceAccountName": "worker"})),
        pod("urgent", &json!({"priorityClassName": "urgent"})),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "worker"}}),
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7}),
    ];
    here.up(&["-f", &here.manifest("pods.json", &objects)]);
    assert_eq!(here.done(&["get", "pods", "-o", "name"]), "pod/urgent\npod/worker\n");
}

#[test]
fn tables_are_those_of_kubectl() {
    let Some(kubectl) = binaries_or_skip("tables_are_those_of_kubectl") else { return };
    let here = Here::new();
    here.up(&["--no-demo"]);
    for kind in ["namespaces", "nodes", "crds", "services"] {
        let begun = Instant::now();
        loop {
            let ours = here.done(&["get", kind]);
            let mut command = Command::new(kubectl.join("kubectl"));
            let kubeconfig = here.data().join("kubeconfig");
            let theirs = Said::new(command.args(["get", kind, "--kubeconfig"]).arg(kubeconfig).output());
            if ours == theirs.stdout {
                break;
            }
            // Ages go on between the two.
            assert!(begun.elapsed() < LIMIT, "{kind}:\n{ours}\n{theirs:?}");
        }
    }
}

#[test]
fn logs_are_those_of_a_pod_or_of_all_pods_of_a_workload() {
    let here = Here::new();
    let mut objects = echo("talk", free_port().unwrap());
    objects[0]["spec"]["replicas"] = json!(2);
    here.up(&["-f", &here.manifest("talk.json", &objects)]);
    let pods = here.done(&["get", "pods", "-o", "name"]);
    let pods: Vec<&str> = pods.lines().map(|line| line.strip_prefix("pod/").unwrap()).collect();
    assert_eq!(pods.len(), 2, "{pods:?}");
    for name in ["talk", "deployment/talk", "deploy/talk"] {
        let lines = here.done(&["logs", name, "--tail", "1"]);
        for pod in &pods {
            assert!(lines.lines().any(|line| line.starts_with(&format!("[{pod}] serving http://"))), "{lines}");
        }
    }
    let line = here.done(&["logs", pods[0]]);
    assert!(line.starts_with("serving http://"), "{line}");

    let said = here.run(&["logs", pods[0], "-c", "other"]);
    assert_eq!(said.stderr, format!("error: the pod {} has no container other\nhint: it has echo\n", pods[0]));
    let said = here.run(&["logs", pods[0], "--previous"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("previous terminated container"), "{said:?}");
    let said = here.run(&["logs", "nobody"]);
    assert!(said.stderr.starts_with("error: there is no nobody in the namespace default\nhint: "), "{said:?}");

    // Following ends with the pods.
    let mut following = here.command(&["logs", "talk", "-f"]);
    let mut following = following.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines().map(Result::unwrap);
    for _ in &pods {
        let line = lines.next().unwrap();
        assert!(line.contains("serving http://"), "{line}");
    }
    here.done(&["delete", "deployment", "talk"]);
    assert_eq!(following.wait().unwrap().code(), Some(0), "{:?}", lines.collect::<Vec<_>>());
}
