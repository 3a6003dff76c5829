//! Every `golden/NAME.input.json` gives `golden/NAME.json`. `UPDATE_GOLDEN=1` writes the latter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;
use skep_api::config::run_config::RunConfig;

use super::Case;
use crate::proxy::pod::deployment;

const INPUT: &str = ".input.json";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/proxy/run_config/golden")
}

/// The inputs, by name.
pub(super) fn inputs() -> BTreeMap<String, Value> {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let inputs = files.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(INPUT)?.to_owned();
        let text = fs::read_to_string(&path).unwrap();
        Some((name, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))))
    });
    let inputs: BTreeMap<String, Value> = inputs.collect();
    assert!(inputs.len() > 30, "{}", inputs.len());
    inputs
}

#[test]
fn each_input_gives_its_document() {
    let update = env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for (name, input) in inputs() {
        let config = Case::read(&input).build().unwrap_or_else(|error| panic!("{name}: {error}"));
        let (path, text) = (folder().join(format!("{name}.json")), config.to_json() + "\n");
        if update {
            fs::write(&path, &text).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (golden, built): (Value, Value) =
            (serde_json::from_str(&golden).unwrap(), serde_json::from_str(&text).unwrap());
        if golden != built {
            wrong.push(format!("{name}:\n{}", json_patch::diff(&golden, &built)));
        }
        assert_eq!(RunConfig::from_json(&text).unwrap(), config, "{name}: a proxy reads what was written");
    }
    assert!(wrong.is_empty(), "to accept, run with UPDATE_GOLDEN=1\n{}", wrong.join("\n"));
}

#[test]
fn each_document_has_an_input() {
    for file in fs::read_dir(folder()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let input = name.replace(INPUT, ".json").replace(".json", INPUT);
        assert!(folder().join(&input).exists(), "{name} is left over: there is no {input}");
    }
}

/// The variables that a document refers to, wherever it does.
fn variables(document: &Value) -> Vec<String> {
    match document {
        Value::Object(members) => {
            let is_name =
                |member: &str| member.ends_with("_env_var") || member.ends_with("_env") || member.ends_with("Env");
            let of = |(member, value): (&String, &Value)| match value {
                Value::String(name) if is_name(member) && !name.is_empty() => vec![name.clone()],
                value => variables(value),
            };
            members.iter().flat_map(of).collect()
        }
        Value::Array(items) => items.iter().flat_map(variables).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn auth_trap_78_variables_that_a_document_names_are_those_of_its_pod() {
    let mut found = 0;
    for (name, input) in inputs() {
        let case = Case::read(&input);
        let document = serde_json::from_str(&case.build().unwrap().to_json()).unwrap();
        let pod = deployment(&case.inputs(), "checksum").unwrap().spec.unwrap().template.spec.unwrap();
        let given: Vec<String> =
            pod.containers.into_iter().flat_map(|it| it.env.unwrap_or_default()).map(|it| it.name).collect();
        for variable in variables(&document) {
            assert!(given.contains(&variable), "{name}: {variable} is not among {given:?}");
            found += 1;
        }
    }
    assert!(found > 5, "{found}");
}
