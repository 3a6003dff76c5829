//! Brings packages onto this machine, by the tools that people use for that.

use std::fs;
use std::io;
use std::path::Path;

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::package::{Package, Registry};
use super::{ImageError, Program, place};
use crate::broker::{Broker, HostCommand};

/// How much of what an installer printed is told when it fails.
const TOLD_LINES: usize = 8;

impl Package {
    /// Installs into its folder. It counts only when all of it is there: Python environments know their own path, and
    /// cannot be made elsewhere and moved.
    pub(super) async fn install(
        &self,
        cache: &Path,
        broker: &Broker,
        progress: impl Fn(&str) + Send,
    ) -> Result<Program, ImageError> {
        let folder = self.folder(cache);
        let failed = |cause| ImageError::Io { path: folder.clone(), cause };
        let commands = self.commands(&folder)?;
        // What is there was cut short, or has lost something since.
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => fs::create_dir_all(&folder).map_err(failed)?,
        }
        for command in commands {
            run(broker, &command, &progress).await?;
        }
        let program = self.program(&folder)?;
        fs::write(Self::mark(&folder), b"").map_err(failed)?;
        Ok(program)
    }

    /// What installs the package into a folder; an error when this machine has no program for that.
    pub(super) fn commands(&self, folder: &Path) -> Result<Vec<HostCommand>, ImageError> {
        self.commands_by(|program| place::find(program).is_some(), folder)
    }

    /// The same, given which programs there are.
    fn commands_by(&self, has: impl Fn(&str) -> bool, folder: &Path) -> Result<Vec<HostCommand>, ImageError> {
        let text = |path: &Path| path.display().to_string();
        let command = |argv: Vec<String>, env: Vec<(String, String)>| HostCommand { argv, env, working_dir: None };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self.registry {
            Registry::Npm => {
                if !has("npm") {
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
                if has("uv") {
                    let pythons = folder.parent().unwrap_or(folder).join(".python");
                    let env = vec![("UV_PYTHON_INSTALL_DIR".to_owned(), text(&pythons))];
                    let mut install = words(&["uv", "pip", "install", "--python"]);
                    install.extend([text(&python), wanted]);
                    let mut make = words(&["uv", "venv", "--allow-existing"]);
                    make.push(text(folder));
                    return Ok(vec![command(make, env.clone()), command(install, env)]);
                }
                if !has("python3") {
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
    use super::*;

    fn commands(image: &str, tools: &[&str]) -> Result<Vec<String>, String> {
        let package = Package::parse(image).unwrap().unwrap();
        let commands = package.commands_by(|program| tools.contains(&program), Path::new("/cache/p"));
        let lines = commands.map(|all| all.iter().map(|command| command.argv.join(" ")).collect());
        lines.map_err(|error| error.to_string())
    }

    #[test]
    fn python_does_where_uv_is_missing() {
        let image = "uvx://mcp-server-time@1.2";
        let by_uv = commands(image, &["uv", "python3"]).unwrap();
        assert_eq!(by_uv[0], "uv venv --allow-existing /cache/p");
        assert_eq!(by_uv[1], "uv pip install --python /cache/p/bin/python mcp-server-time==1.2");
        let by_python = commands(image, &["python3"]).unwrap();
        assert_eq!(by_python[0], "python3 -m venv /cache/p");
        let install = "/cache/p/bin/python -m pip install --disable-pip-version-check --quiet mcp-server-time==1.2";
        assert_eq!(by_python[1], install);
        assert_eq!(
            commands(image, &["npm"]).unwrap_err(),
            "uv is not installed on this machine: install uv, or Python 3 with venv"
        );
        assert!(commands("npx://a", &["uv"]).unwrap_err().starts_with("npm is not installed"));
        assert!(commands("npx://a", &["npm"]).unwrap()[0].ends_with("--ignore-scripts --prefix /cache/p a@latest"));
    }
}
