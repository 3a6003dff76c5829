//! Packages of npm and PyPI that are MCP servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ImageError, Program, place, prefix_of};
use crate::container::{Mount, is_in_a_home};

/// In the folder of a package that is complete.
const MARK: &str = ".installed";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) registry: Registry,
    pub(super) name: String,
    pub(super) version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registry {
    Npm,
    PyPi,
}

impl Package {
    /// The package that an image names, if its form is that of a package.
    pub(super) fn parse(image: &str) -> Option<Result<Self, ImageError>> {
        let (scheme, rest) = image.split_once("://")?;
        let registry = match scheme {
            "npx" => Registry::Npm,
            "uvx" => Registry::PyPi,
            _ => return Some(Err(ImageError::BadPackage(image.to_owned()))),
        };
        let split = rest.char_indices().skip(1).find(|(_, letter)| *letter == '@').map(|(at, _)| at);
        let (name, version) = match split {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        // What ends up in a command line and in a path is one word, and not an option.
        let plain = |text: &str, extra: &str| {
            !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || extra.contains(letter))
        };
        let bare = name.strip_prefix('@').filter(|_| registry == Registry::Npm).unwrap_or(name);
        let parts: Vec<&str> = bare.split('/').collect();
        let scoped = bare.len() != name.len();
        let good = parts.len() == if scoped { 2 } else { 1 }
            && parts.iter().all(|part| plain(part, "-_.") && part.starts_with(|letter: char| letter.is_alphanumeric()))
            && version.is_none_or(|version| plain(version, ".-+_"));
        if !good {
            return Some(Err(ImageError::BadPackage(image.to_owned())));
        }
        Some(Ok(Self { registry, name: name.to_owned(), version: version.map(str::to_owned) }))
    }

    pub(super) fn folder(&self, cache: &Path) -> PathBuf {
        let registry = match self.registry {
            Registry::Npm => "npm",
            Registry::PyPi => "pypi",
        };
        let version = self.version.as_deref().unwrap_or("latest");
        cache.join(registry).join(format!("{}@{version}", self.name.replace('/', "+")))
    }

    /// The name that its program has most likely.
    fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// The file that says that a package is complete.
    pub(super) fn mark(folder: &Path) -> PathBuf {
        folder.join(MARK)
    }

    /// The program of the package, if it is there. What is not all there is as good as absent.
    pub(super) fn installed(&self, cache: &Path) -> Result<Option<Program>, ImageError> {
        let folder = self.folder(cache);
        if !Self::mark(&folder).exists() {
            return Ok(None);
        }
        match self.program(&folder) {
            Ok(program) => Ok(Some(program)),
            Err(ImageError::NoProgram { .. } | ImageError::Io { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn program(&self, folder: &Path) -> Result<Program, ImageError> {
        let bound = |path: PathBuf| Mount { source: path.clone(), target: path, read_only: true };
        let no_program = |found: Vec<String>| ImageError::NoProgram {
            package: self.name.clone(),
            found: if found.is_empty() { "none".to_owned() } else { found.join(", ") },
        };
        let mut mounts = vec![bound(folder.to_owned())];
        let entrypoint = match self.registry {
            Registry::Npm => {
                let node = place::find("node").ok_or(ImageError::NoTool { tool: "node", hint: "install Node.js" })?;
                let package = folder.join("node_modules").join(&self.name);
                let manifest = package.join("package.json");
                let text = fs::read(&manifest).map_err(|cause| ImageError::Io { path: manifest, cause })?;
                let manifest: Value = serde_json::from_slice(&text).unwrap_or_default();
                let script = package.join(script(&manifest, self.short_name()).map_err(no_program)?);
                fs::metadata(&script).map_err(|cause| ImageError::Io { path: script.clone(), cause })?;
                mounts.push(bound(prefix_of(&node)));
                vec![node.display().to_string(), script.display().to_string()]
            }
            Registry::PyPi => {
                let program = folder.join("bin").join(self.short_name());
                if !program.exists() {
                    return Err(no_program(programs(&folder.join("bin"))));
                }
                let python = folder.join("bin/python").canonicalize();
                mounts.extend(python.ok().map(|python| bound(prefix_of(&python))));
                vec![program.display().to_string()]
            }
        };
        mounts.retain(|mount| is_in_a_home(&mount.source) || mount.source == folder);
        Ok(Program { entrypoint, mounts, ..Program::default() })
    }
}

/// The script of the program that `npx` would run: the only one, or the one with the name of the package.
fn script(manifest: &Value, name: &str) -> Result<String, Vec<String>> {
    match &manifest["bin"] {
        Value::String(script) => Ok(script.clone()),
        Value::Object(programs) => {
            let programs: BTreeMap<&String, &str> =
                programs.iter().filter_map(|(name, script)| Some((name, script.as_str()?))).collect();
            let only = programs.values().next().filter(|_| programs.len() == 1);
            let named = programs.iter().find(|(program, _)| **program == name).map(|(_, script)| script);
            let found = only.or(named).map(|script| (*script).to_owned());
            found.ok_or_else(|| programs.keys().map(|name| (*name).clone()).collect())
        }
        _ => Err(Vec::new()),
    }
}

/// The programs in an environment of Python that come from packages.
fn programs(folder: &Path) -> Vec<String> {
    let names =
        fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let of_python = ["python", "pip", "activate", "Activate", "deactivate", "pydoc"];
    let mut names: Vec<String> = names.filter(|name| !of_python.iter().any(|own| name.starts_with(own))).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packages_are_recognised() {
        let parsed = |image: &str| {
            Package::parse(image).map(|package| package.ok().map(|package| (package.name, package.version)))
        };
        let some = |name: &str, version: Option<&str>| Some(Some((name.to_owned(), version.map(str::to_owned))));
        assert_eq!(parsed("nginx:1"), None);
        assert_eq!(parsed("npx://a"), some("a", None));
        assert_eq!(parsed("npx://@s/a@1.2.3"), some("@s/a", Some("1.2.3")));
        assert_eq!(parsed("uvx://mcp-server-time@2025.1"), some("mcp-server-time", Some("2025.1")));
        for bad in ["npx://", "npx://-g", "npx://a/b", "npx://@s", "npx://a@1 2", "uvx://@s/a", "npx://../a", "ftp://x"]
        {
            assert_eq!(parsed(bad), Some(None), "{bad}");
        }
    }

    #[test]
    fn scripts_are_found() {
        assert_eq!(script(&json!({"bin": "a.js"}), "x").unwrap(), "a.js");
        assert_eq!(script(&json!({"bin": {"other": "a.js"}}), "x").unwrap(), "a.js");
        assert_eq!(script(&json!({"bin": {"other": "a.js", "x": "b.js"}}), "x").unwrap(), "b.js");
        assert_eq!(script(&json!({"bin": {"p": "a.js", "q": "b.js"}}), "x").unwrap_err(), ["p", "q"]);
        assert!(script(&json!({}), "x").is_err());
    }
}
