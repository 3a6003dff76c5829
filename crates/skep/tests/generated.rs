//! Generated files are current, and what is written by hand says what the code reads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use skep_api::crd;
use skep_api::kind::GROUP;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn generated_files_are_current() {
    let stale = skep::reference::stale(&root()).unwrap();
    assert!(stale.is_empty(), "run `cargo xtask generate`; out of date: {stale:?}");
}

/// The files with this ending in a folder and below, with what is in them.
fn files(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path.extension().is_some_and(|found| found == ending) {
        true => vec![(path.clone(), fs::read_to_string(&path).unwrap())],
        false if path.is_dir() => files(&path, ending),
        false => Vec::new(),
    };
    entries.flat_map(read).collect()
}

/// The guides, without those that are generated.
fn guides() -> Vec<(PathBuf, String)> {
    let mut guides = files(&root().join("docs"), "md");
    guides.retain(|(path, _)| !path.components().any(|part| part.as_os_str() == "reference"));
    let readme = root().join("README.md");
    guides.push((readme.clone(), fs::read_to_string(readme).unwrap()));
    guides
}

/// Names that guides mention because nothing of ours has them.
const OF_OTHERS: [&str; 3] = ["HTTP_PROXY", "NO_PROXY", "realm_access"];

/// Words with underscores in what a guide has in code spans: members of documents, variables, tests.
fn names(guide: &str) -> impl Iterator<Item = &str> {
    let lines = guide.lines().filter(|line| !line.starts_with("```"));
    let spans = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = spans.flat_map(|span| span.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_'));
    words.filter(|word| word.trim_matches('_').contains('_') && *word == word.trim_matches('_'))
}

#[test]
fn auth_trap_82_names_in_guides_are_names_in_the_code() {
    let mut code = String::new();
    for folder in ["crates", "conformance", "bench", "fuzz", "xtask", "deploy"] {
        for ending in ["rs", "yaml"] {
            for (path, text) in files(&root().join(folder), ending) {
                code += &text;
                code += path.to_str().unwrap();
            }
        }
    }
    let guides = guides();
    let found: BTreeMap<&str, &Path> =
        guides.iter().flat_map(|(path, guide)| names(guide).map(|name| (name, path.as_path()))).collect();
    assert!(found.len() > 300, "{}", found.len());
    let is_strange = |name: &str| {
        // What ends so stands for any name.
        let known = name.strip_suffix("NAME").unwrap_or(name);
        !code.contains(known) && !OF_OTHERS.contains(&name)
    };
    let strange: Vec<String> = found
        .into_iter()
        .filter(|(name, _)| is_strange(name))
        .map(|(name, path)| format!("{}: {name}", path.display()))
        .collect();
    assert!(strange.is_empty(), "nothing in the code is called so:\n{}", strange.join("\n"));
}

/// Manifests of our kinds in examples and guides, each with its place and the kind that it is one of. What has a spec and no
/// kind is a part of an MCPServer.
fn manifests() -> Vec<(String, String, Value)> {
    let mut texts: Vec<(PathBuf, String)> = files(&root().join("examples"), "yaml");
    for (path, guide) in guides() {
        let blocks = guide.split("\n```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
        texts.extend(blocks.map(|block| (path.clone(), block.to_owned())));
    }
    let mut manifests = Vec::new();
    for (path, text) in texts {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for document in documents {
            let is_ours = document["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP));
            if is_ours || document["kind"].is_null() && document["spec"].is_object() {
                let kind = document["kind"].as_str().unwrap_or("MCPServer").to_owned();
                manifests.push((path.display().to_string(), kind, document));
            }
        }
    }
    manifests
}

/// Members that a schema does not have.
fn unknown(value: &Value, schema: &Value, place: &str) -> Vec<String> {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return Vec::new();
    }
    let below = |name: &str, value: &Value| {
        let place = format!("{place}.{name}");
        match schema["properties"].get(name).or_else(|| schema.get("additionalProperties")) {
            Some(schema) => unknown(value, schema, &place),
            None => vec![place],
        }
    };
    match value {
        Value::Object(members) => members.iter().flat_map(|(name, value)| below(name, value)).collect(),
        Value::Array(items) => items.iter().flat_map(|item| unknown(item, &schema["items"], place)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn auth_trap_82_manifests_in_examples_and_guides_have_members_that_exist() {
    let manifests = manifests();
    assert!(manifests.len() >= 8, "{}", manifests.len());
    for (place, kind, manifest) in manifests {
        let entry = crd::ALL.iter().find(|entry| entry.definition.kind == kind).unwrap();
        let definition = entry.document();
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let is_stored = |version: &&Value| version["storage"] == true;
        let schema = &versions.iter().find(is_stored).unwrap()["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let strange = unknown(&manifest["spec"], schema, "spec");
        assert!(strange.is_empty(), "{place}: {kind} has no {strange:?}");
    }
}
