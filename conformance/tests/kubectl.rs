//! What a person with kubectl sees of our API on a real cluster.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use skep_conformance::control_plane::ControlPlane;

const SERVER: &str = "
apiVersion: toolhive.stacklok.dev/v1alpha1
kind: MCPServer
metadata:
  name: fetch
  namespace: default
spec:
  image: example.com/fetch:1
  replicas: 1
";

const AGGREGATOR: &str = "
apiVersion: toolhive.stacklok.dev/v1beta1
kind: VirtualMCPServer
metadata:
  name: all
spec:
  groupRef:
    name: engineering
  incomingAuth:
    type: anonymous
  replicas: 1
";

struct Output {
    stdout: String,
    stderr: String,
    success: bool,
}

fn run(mut command: Command, arguments: &[&str]) -> Output {
    let output = command.args(arguments).output().unwrap();
    Output {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        success: output.status.success(),
    }
}

#[tokio::test]
async fn kubectl_installs_explains_and_shows_our_kinds() {
    let Some(control_plane) = ControlPlane::start_or_skip("kubectl_installs_explains_and_shows_our_kinds").await else {
        return;
    };
    let kubectl = |arguments: &[&str]| {
        let output = run(control_plane.kubectl(), arguments);
        assert!(output.success, "kubectl {arguments:?}: {}{}", output.stdout, output.stderr);
        output
    };

    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
    let applied = kubectl(&["apply", "--server-side", "-f", crds.to_str().unwrap()]);
    assert_eq!(applied.stdout.lines().count(), 14, "{}", applied.stdout);
    kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]);

    // The explanation of a field: type, meaning, and what each value means.
    let explained = kubectl(&["explain", "mcpserver.spec.transport"]).stdout;
    for expected in ["FIELD: transport <string>", "ENUM:", "streamable-http", "- stdio:"] {
        assert!(explained.contains(expected), "{expected:?} is not in:\n{explained}");
    }

    let manifest = control_plane.folder().join("fetch.yaml");
    fs::write(&manifest, SERVER).unwrap();
    let created = kubectl(&["apply", "--server-side", "-f", manifest.to_str().unwrap()]);
    assert!(created.stderr.contains("v1alpha1 is deprecated; use v1beta1"), "{}", created.stderr);

    kubectl(&["scale", "mcpserver/fetch", "--replicas=3"]);
    assert_eq!(
        kubectl(&["get", "mcpserver", "fetch", "-o", "jsonpath={.spec.replicas} {.spec.proxyPort}"]).stdout,
        "3 8080"
    );

    // The scale of an aggregator, read through the subresource.
    let aggregator = control_plane.folder().join("aggregator.yaml");
    fs::write(&aggregator, AGGREGATOR).unwrap();
    kubectl(&["apply", "--server-side", "-f", aggregator.to_str().unwrap()]);
    kubectl(&["scale", "vmcp/all", "--replicas=2"]);
    assert_eq!(kubectl(&["get", "vmcp", "all", "-o", "jsonpath={.spec.replicas}"]).stdout, "2");

    let status =
        r#"{"status":{"phase":"Ready","readyReplicas":3,"url":"http://mcp-fetch-proxy.default.svc:8080/mcp"}}"#;
    kubectl(&["patch", "mcpserver", "fetch", "--subresource=status", "--type=merge", "-p", status]);
    let table = kubectl(&["get", "mcpservers"]).stdout;
    let header: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["NAME", "STATUS", "READY", "REPLICAS", "URL", "AGE"], "{table}");
    assert!(table.contains("http://mcp-fetch-proxy.default.svc:8080/mcp"), "{table}");

    let everything = kubectl(&["get", "toolhive", "-o", "name"]).stdout;
    let expected = ["mcpserver.toolhive.stacklok.dev/fetch", "virtualmcpserver.toolhive.stacklok.dev/all"];
    assert_eq!(everything.lines().collect::<Vec<_>>(), expected);

    let misspelt = control_plane.folder().join("misspelt.yaml");
    fs::write(&misspelt, SERVER.replace("replicas: 1", "replica: 1")).unwrap();
    let refused = run(control_plane.kubectl(), &["create", "-f", misspelt.to_str().unwrap()]);
    assert!(!refused.success && refused.stderr.contains(r#"unknown field "spec.replica""#), "{}", refused.stderr);
}
