//! The command line, as a person or a script meets it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::Read as _;
use std::process::Stdio;

use serde_json::Value;
use skep_api::crd;
use snapbox::cmd::{Command, cargo_bin};
use snapbox::str;

fn skep(arguments: &[&str]) -> Command {
    Command::new(cargo_bin!("skep")).args(arguments)
}

fn stdout(arguments: &[&str]) -> String {
    let output = skep(arguments).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

#[test]
fn crds_prints_every_kind_as_a_yaml_stream() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&stdout(&["crds"])).unwrap();
    let ours: Vec<Value> = crd::ALL.iter().map(crd::Entry::document).collect();
    assert_eq!(documents, ours);
}

#[test]
fn crds_prints_one_kind_as_one_json_document_and_several_as_a_list() {
    let one: Value = serde_json::from_str(&stdout(&["crds", "--kind", "mcpserver", "-o", "json"])).unwrap();
    assert_eq!(one["spec"]["names"]["kind"], "MCPServer");
    let arguments = ["crds", "-k", "vmcp", "-k", "mcpgroups", "-k", "VirtualMCPServer", "-o", "json"];
    let several: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    let kinds: Vec<&Value> =
        several["items"].as_array().unwrap().iter().map(|crd| &crd["spec"]["names"]["kind"]).collect();
    assert_eq!((several["kind"].as_str(), kinds), (Some("List"), vec![&"VirtualMCPServer".into(), &"MCPGroup".into()]));
}

#[test]
fn a_misspelt_kind_gets_a_hint() {
    skep(&["crds", "--kind", "MCPServr"]).assert().code(1).stdout_eq("").stderr_eq(str![[r#"
error: there is no kind "MCPServr"
hint: did you mean MCPServer?

"#]]);
    skep(&["crds", "--kind", "Deployment"]).assert().code(1).stdout_eq("").stderr_eq(str![[r#"
error: there is no kind "Deployment"
hint: the kinds are EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRegistry, MCPRemoteProxy, MCPServer, MCPServerEntry, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig, VirtualMCPCompositeToolDefinition, VirtualMCPServer

"#]]);
}

#[test]
fn usage_errors_exit_with_2_and_leave_standard_output_empty() {
    for arguments in [&["crd"][..], &["crds", "-o", "toml"], &["crds", "--nope"], &["completions"], &[]] {
        skep(arguments).assert().code(2).stdout_eq("");
    }
}

#[test]
fn version_is_one_line_for_people_and_an_object_for_programs() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&["version"]), format!("skep {version}\n"));
    assert_eq!(stdout(&["--version"]), format!("skep {version}\n"));
    let object: Value = serde_json::from_str(&stdout(&["version", "-o", "json"])).unwrap();
    assert_eq!(object["version"], version);
}

#[test]
fn completions_name_the_commands_and_hide_the_hidden_one() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        assert!(script.contains("crds") && script.contains("completions"), "{shell}");
        assert!(!script.contains("reference"), "{shell}");
    }
    assert!(!stdout(&["--help"]).contains("reference"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = std::process::Command::new(cargo_bin!("skep"))
        .arg("crds")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
