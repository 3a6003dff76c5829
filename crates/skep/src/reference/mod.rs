//! The files of the repository that are written from what the program knows about itself: the manifests and the reference
//! pages.

mod cli;
mod crds;

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;
use skep_api::crd;

use crate::commands::crds::yaml_stream;

/// Every generated file, by its path in the repository.
pub fn files() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut files = vec![
        (PathBuf::from("docs/reference/cli.md"), cli::page()),
        (PathBuf::from("docs/reference/crds.md"), crds::page()),
    ];
    for entry in crd::ALL {
        let path = PathBuf::from(format!("deploy/crds/{}.yaml", entry.definition.plural));
        files.push((path, yaml_stream(&[entry.document()])?));
    }
    let version = env!("CARGO_PKG_VERSION");
    let manifests = PathBuf::from("deploy/manifests");
    for (name, documents) in skep_operator::manifests::files(version) {
        files.push((manifests.join(name), yaml_stream(&documents)?));
    }
    // Above both folders: kustomize reads nothing from outside of its own.
    let crds = crd::ALL.iter().map(|entry| format!("crds/{}.yaml", entry.definition.plural));
    let own = skep_operator::manifests::files(version).into_iter().map(|(name, _)| format!("manifests/{name}"));
    let kustomization = skep_operator::manifests::kustomization(&crds.chain(own).collect::<Vec<_>>(), version);
    files.push((PathBuf::from("deploy/kustomization.yaml"), yaml_stream(&[kustomization])?));
    let namespaced = PathBuf::from("deploy/namespaced");
    for (name, documents) in skep_operator::manifests::namespaced_files(version) {
        files.push((namespaced.join(name), yaml_stream(&documents)?));
    }
    let kustomization = skep_operator::manifests::namespaced_kustomization(version);
    files.push((namespaced.join("kustomization.yaml"), yaml_stream(&[kustomization])?));
    let component = skep_operator::manifests::openshift_component();
    files.push((PathBuf::from("deploy/openshift/kustomization.yaml"), yaml_stream(&[component])?));
    Ok(files)
}

/// The generated files below `root` that are not what they should be.
pub fn stale(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for (path, text) in files()? {
        match fs::read_to_string(root.join(&path)) {
            Ok(found) if found == text => {}
            Ok(_) => stale.push(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => stale.push(path),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
    Ok(stale)
}

/// Writes the stale files below `root` and returns their paths.
pub fn write(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let stale = stale(root)?;
    for (path, text) in files()?.into_iter().filter(|(path, _)| stale.contains(path)) {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(stale)
}

/// The first lines of every generated page.
fn heading(title: &str) -> String {
    format!("<!-- Written by `cargo xtask generate`; change the source instead. -->\n\n# {title}\n\n")
}
