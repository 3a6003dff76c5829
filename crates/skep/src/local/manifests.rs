//! Manifests: files of YAML or JSON documents, folders of such files, or standard input.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kube::Client;
use serde_json::Value;
use skep_kube::yaml;

use crate::hint::Hinted;
use crate::objects::Place;

/// Where objects are that do not say so.
const NAMESPACE: &str = "default";

/// An object that somebody wants to be there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    /// The file and the number of the document in it.
    pub(crate) origin: String,
    pub(crate) object: Value,
}

/// Reads all manifests at the given places, in an order in which they can be applied.
pub(crate) fn read(places: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for place in places {
        for file in files(place)? {
            manifests.extend(read_file(&file)?);
        }
    }
    if manifests.is_empty() && !places.is_empty() {
        let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        return Err(Hinted::new(format!("there is no manifest in {}", places.join(", ")))
            .hint("a manifest is YAML or JSON with an apiVersion, a kind and a metadata.name")
            .into());
    }
    // What others live in, are made of or cannot be without comes first; the rest keeps its order.
    manifests.sort_by_key(|manifest| match manifest.object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("CustomResourceDefinition") => 1,
        Some("ServiceAccount" | "PriorityClass") => 2,
        _ => 3,
    });
    Ok(manifests)
}

fn files(place: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if place == Path::new("-") || !place.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let entries = fs::read_dir(place).with_context(|| format!("cannot read the folder {}", place.display()))?;
    let is_manifest = |path: &PathBuf| {
        path.is_file() && path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_manifest).collect();
    files.sort();
    if files.is_empty() {
        let problem = format!("there is no manifest in {}", place.display());
        return Err(Hinted::new(problem).hint("manifests are files that end in .yaml, .yml or .json").into());
    }
    Ok(files)
}

fn read_file(file: &Path) -> anyhow::Result<Vec<Manifest>> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read manifests from standard input")?;
        text
    } else {
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
    };
    parse(&file.display().to_string(), &text)
}

/// Applies manifests; none of them when the server would refuse one.
pub(super) async fn apply(client: &Client, manifests: &[Manifest]) -> anyhow::Result<()> {
    for dry_run in [true, false] {
        for manifest in manifests.iter().filter(|manifest| !dry_run || !needs_another(manifest, manifests)) {
            let applied = async {
                let place = Place::find(client, &manifest.object, NAMESPACE).await?;
                if dry_run { place.try_apply(&manifest.object).await } else { place.apply(&manifest.object).await }
            };
            applied.await.with_context(|| format!("cannot apply {}", manifest.origin))?;
        }
    }
    Ok(())
}

/// Whether the server can say nothing about an object before it has another one: its namespace, its kind, or what it
/// refuses pods without.
fn needs_another(manifest: &Manifest, manifests: &[Manifest]) -> bool {
    let object = &manifest.object;
    let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    let is_pod = object["kind"] == "Pod" && object["apiVersion"] == "v1";
    let pod_names = |member: &str, other: &Value| is_pod && object["spec"][member] == other["metadata"]["name"];
    manifests.iter().map(|other| &other.object).any(|other| match other["kind"].as_str() {
        Some("Namespace") => other["metadata"]["name"] == object["metadata"]["namespace"],
        Some("CustomResourceDefinition") => {
            other["spec"]["names"]["kind"] == object["kind"]
                && group.is_some_and(|(group, _)| other["spec"]["group"] == group)
        }
        Some("ServiceAccount") => {
            namespace(other) == namespace(object)
                && ["serviceAccountName", "serviceAccount"].iter().any(|member| pod_names(member, other))
        }
        Some("PriorityClass") => pod_names("priorityClassName", other),
        _ => false,
    })
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE)
}

/// The manifests in a text, which comes from a place of this name.
pub(super) fn parse(place: &str, text: &str) -> anyhow::Result<Vec<Manifest>> {
    let documents = yaml::read_all(text).map_err(|error| {
        let error = error.strip_prefix("yaml: ").unwrap_or(&error);
        Hinted::new(format!("{place} is not valid YAML: {error}")).hint(
            "a key stands once in its object, strings with special characters are quoted, and tabs indent nothing",
        )
    })?;
    let mut manifests = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let origin = format!("{place}, document {}", index + 1);
        match document["kind"].as_str() {
            Some("List") => {
                let items = document["items"].as_array().cloned().unwrap_or_default();
                manifests.extend(items.into_iter().map(|object| Manifest { origin: origin.clone(), object }));
            }
            _ => manifests.push(Manifest { origin, object: document }),
        }
    }
    for Manifest { origin, object } in &manifests {
        for (member, value) in [
            ("apiVersion", &object["apiVersion"]),
            ("kind", &object["kind"]),
            ("metadata.name", &object["metadata"]["name"]),
        ] {
            if value.as_str().is_none_or(str::is_empty) {
                return Err(Hinted::new(format!("{origin}: {member} is missing"))
                    .hint("every manifest has an apiVersion, a kind and a metadata.name")
                    .into());
            }
        }
    }
    Ok(manifests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Manifest>, String> {
        let folder = tempfile::TempDir::new().unwrap();
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        fs::write(folder.path().join("notes.txt"), "not a manifest").unwrap();
        read(&[folder.path().to_owned()]).map_err(|error| error.to_string())
    }

    #[test]
    fn documents_are_read_and_ordered() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\n\
            apiVersion: v1\nkind: Namespace\nmetadata: {name: hive}\n---\n\
            apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n";
        let found = read_text(text).unwrap();
        let kinds: Vec<_> = found.iter().map(|manifest| manifest.object["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["Namespace", "ConfigMap", "Secret"]);
        assert!(found[0].origin.ends_with("a.yaml, document 2"), "{}", found[0].origin);
    }

    #[test]
    fn what_needs_another_comes_after_it_and_cannot_be_tried() {
        let pod = |name: &str, spec: &str| {
            format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n---\n")
        };
        let text = pod("alone", "serviceAccountName: other")
            + &pod("with-account", "serviceAccountName: worker")
            + &pod("with-old-account", "serviceAccount: worker")
            + &pod("urgent", "priorityClassName: urgent")
            + "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: worker, namespace: default}\n---\n\
               apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other, namespace: elsewhere}\n---\n\
               apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 1\n";
        let found = read_text(&text).unwrap();
        let names = |manifests: Vec<&Manifest>| {
            let names = manifests.into_iter().map(|manifest| manifest.object["metadata"]["name"].as_str().unwrap());
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let ordered = ["worker", "other", "urgent", "alone", "with-account", "with-old-account", "urgent"];
        assert_eq!(names(found.iter().collect()), ordered);
        let untried = found.iter().filter(|manifest| needs_another(manifest, &found)).collect();
        assert_eq!(names(untried), ["with-account", "with-old-account", "urgent"]);
    }

    /// As kubectl reads them.
    #[test]
    fn numbers_that_begin_with_zero_are_octal() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {mode: 0400}\n";
        assert_eq!(read_text(text).unwrap()[0].object["spec"]["mode"], 0o400);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(read_text("kind: ConfigMap\n").unwrap_err().ends_with("document 1: apiVersion is missing"));
        assert!(read_text("apiVersion: v1\nkind: X\n").unwrap_err().ends_with("metadata.name is missing"));
        assert!(read_text("a: [").unwrap_err().contains("is not valid YAML: "));
        assert!(read_text("a: 1\na: 2").unwrap_err().ends_with("line 2: key \"a\" already set in map"));
        assert!(read_text("# nothing\n").unwrap_err().starts_with("there is no manifest in "));
        let empty = tempfile::TempDir::new().unwrap();
        assert!(read(&[empty.path().to_owned()]).unwrap_err().to_string().starts_with("there is no manifest in"));
        assert!(read(&[empty.path().join("absent.yaml")]).unwrap_err().to_string().starts_with("cannot read"));
    }
}
