//! Packages of npm and PyPI that are MCP servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{ImageError, Program, place, prefix_of};
use crate::broker::{Broker, HostCommand};
use crate::container::Mount;

/// How much of what an installer printed is told when it fails.
const TOLD_LINES: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    registry: Registry,
    name: String,
    version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registry {
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

    fn folder(&self, cache: &Path) -> PathBuf {
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

    pub(super) fn installed(&self, cache: &Path) -> Result<Option<Program>, ImageError> {
        let folder = self.folder(cache);
        if !folder.exists() {
            return Ok(None);
        }
        self.program(&folder).map(Some)
    }

    /// Installs into a folder aside, which takes its place when it is complete.
    pub(super) async fn install(
        &self,
        cache: &Path,
        broker: &Broker,
        progress: impl Fn(&str) + Send,
    ) -> Result<Program, ImageError> {
        let folder = self.folder(cache);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |cause| ImageError::Io { path, cause }
        };
        let parent = folder.parent().unwrap_or(cache);
        fs::create_dir_all(parent).map_err(failed(parent))?;
        // Python environments know their own path, so they are made in place; what is there was cut short.
        let aside = match self.registry {
            Registry::Npm => parent.join(format!(".{}", self.short_name())),
            Registry::PyPi => folder.clone(),
        };
        if aside.exists() {
            fs::remove_dir_all(&aside).map_err(failed(&aside))?;
        }
        fs::create_dir_all(&aside).map_err(failed(&aside))?;
        for command in self.commands(&aside)? {
            if let Err(error) = run(broker, &command, &progress).await {
                // Half an installation must not be taken for a whole one.
                let _ = fs::remove_dir_all(&aside);
                return Err(error);
            }
        }
        if aside != folder {
            fs::rename(&aside, &folder).map_err(failed(&folder))?;
        }
        self.program(&folder)
    }

    fn commands(&self, folder: &Path) -> Result<Vec<HostCommand>, ImageError> {
        let text = |path: &Path| path.display().to_string();
        let command = |argv: Vec<String>, env: Vec<(String, String)>| HostCommand { argv, env, working_dir: None };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self.registry {
            Registry::Npm => {
                if place::find("npm").is_none() {
                    return Err(ImageError::NoTool { tool: "npm", hint: "install Node.js, which brings it" });
                }
                let wanted = format!("{}@{}", self.name, self.version.as_deref().unwrap_or("latest"));
                // Scripts of packages would run outside of any container.
                let mut argv = words(&["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
                argv.extend([text(folder), wanted]);
                Ok(vec![command(argv, Vec::new())])
            }
            Registry::PyPi => {
                let wanted = match &self.version {
                    Some(version) => format!("{}=={version}", self.name),
                    None => self.name.clone(),
                };
                let python = folder.join("bin/python");
                if place::find("uv").is_some() {
                    let pythons = folder.parent().unwrap_or(folder).join(".python");
                    let env = vec![("UV_PYTHON_INSTALL_DIR".to_owned(), text(&pythons))];
                    let mut install = words(&["uv", "pip", "install", "--python"]);
                    install.extend([text(&python), wanted]);
                    let mut make = words(&["uv", "venv", "--allow-existing"]);
                    make.push(text(folder));
                    return Ok(vec![command(make, env.clone()), command(install, env)]);
                }
                if place::find("python3").is_none() {
                    return Err(ImageError::NoTool { tool: "uv", hint: "install uv, or Python 3 with venv" });
                }
                let mut make = words(&["python3", "-m", "venv"]);
                make.push(text(folder));
                let mut install = vec![text(&python)];
                install.extend(words(&["-m", "pip", "install", "--disable-pip-version-check", "--quiet"]));
                install.push(wanted);
                Ok(vec![command(make, Vec::new()), command(install, Vec::new())])
            }
        }
    }

    fn program(&self, folder: &Path) -> Result<Program, ImageError> {
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
                let script = script(&manifest, self.short_name()).map_err(no_program)?;
                mounts.push(bound(prefix_of(&node)));
                vec![node.display().to_string(), package.join(script).display().to_string()]
            }
            Registry::PyPi => {
                let program = folder.join("bin").join(self.short_name());
                if !program.exists() {
                    return Err(no_program(Vec::new()));
                }
                let python = folder.join("bin/python").canonicalize();
                mounts.extend(python.ok().map(|python| bound(prefix_of(&python))));
                vec![program.display().to_string()]
            }
        };
        mounts.retain(|mount| place::is_hidden(&mount.source) || mount.source == folder);
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

/// Runs an installer to its end.
async fn run(broker: &Broker, command: &HostCommand, progress: &(impl Fn(&str) + Send)) -> Result<(), ImageError> {
    let mut process = broker.run(command).await?;
    let mut last: Vec<String> = Vec::new();
    if let (Some(out), Some(side)) = (process.take_stdout(), process.take_stderr()) {
        let mut out = BufReader::new(out).lines();
        let mut side = BufReader::new(side).lines();
        let (mut out_open, mut side_open) = (true, true);
        while out_open || side_open {
            let (line, open) = tokio::select! {
                line = out.next_line(), if out_open => (line, &mut out_open),
                line = side.next_line(), if side_open => (line, &mut side_open),
            };
            match line {
                Ok(Some(line)) if !line.trim().is_empty() => {
                    progress(&line);
                    last.push(line);
                    if last.len() > TOLD_LINES {
                        last.remove(0);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => *open = false,
            }
        }
    }
    let exit = process.wait().await?;
    if exit.code == 0 {
        return Ok(());
    }
    let command = command.argv.iter().take(3).cloned().collect::<Vec<_>>().join(" ");
    Err(ImageError::Failed { command, output: last.join("; ") })
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
