//! Images: names that stand for a program on this machine.
//!
//! There is no container registry here. An image is one of Skep's own programs, an entry of the image map, or a package
//! of npm or PyPI (`npx://name@version`, `uvx://name@version`).

mod install;
mod map;
mod name;
mod package;
mod place;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::broker::Broker;
use crate::container::Mount;
use crate::isolation::Isolation;
pub use map::{ImageMap, MapError, Mapping};
use name::{is_reference, without_tag};
use package::Package;
pub use place::find as find_program;

/// Where Skep's own program is inside its containers.
const OWN_PATH: &str = "/.skep/skep";
/// Where every process finds its own program.
const SELF_PATH: &str = "/proc/self/exe";

/// What an image stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) entrypoint: Vec<String>,
    /// What follows when the container has no arguments of its own.
    pub(crate) arguments: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) working_dir: Option<PathBuf>,
    /// What the program needs to see of the machine.
    pub(crate) mounts: Vec<Mount>,
    /// It is Skep itself, which finds its volumes without mounts, too.
    pub(crate) own: bool,
}

impl Program {
    /// The command line, given what the container says.
    pub(crate) fn command_line(&self, command: &[String], arguments: &[String]) -> Vec<String> {
        let chain = |first: &[String], second: &[String]| [first, second].concat();
        match (command, arguments) {
            ([], []) => chain(&self.entrypoint, &self.arguments),
            ([], arguments) => chain(&self.entrypoint, arguments),
            (command, arguments) => chain(command, arguments),
        }
    }
}

/// Why an image cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    #[error(
        "no program is known for this image: map it to a command in the image map (skep up --image-map FILE), or use \
         npx://PACKAGE or uvx://PACKAGE"
    )]
    Unknown,
    #[error("{0:?} is not a package: write npx://NAME[@VERSION] or uvx://NAME[@VERSION]")]
    BadPackage(String),
    #[error(
        "couldn't parse image name {0:?}: invalid reference format: write [HOST/]NAME[:TAG], the name in lower case"
    )]
    BadName(String),
    #[error("{tool} is not installed on this machine: {hint}")]
    NoTool { tool: &'static str, hint: &'static str },
    #[error(
        "{command} failed: {output} (hint: is the name of the package right, and does this machine reach its registry?)"
    )]
    Failed { command: String, output: String },
    #[error("package {package} has no program of its name; it has: {found}")]
    NoProgram { package: String, found: String },
    #[error("{0}")]
    Broker(#[from] crate::broker::BrokerError),
    #[error("{}: {cause}", path.display())]
    Io { path: PathBuf, cause: std::io::Error },
}

/// What images a node knows.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    /// The program of Skep itself.
    pub own_program: PathBuf,
    /// Images that stand for Skep itself; `*` stands for any text, and what names no tag fits all of them.
    pub own_images: Vec<String>,
    /// Names of images that stand for a command of Skep, such as `skep-demo/echo` for `demo echo`.
    pub own_commands: Vec<(String, Vec<String>)>,
    pub map: ImageMap,
    /// The folder of the packages that were pulled.
    pub cache: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Images {
    config: ImageConfig,
    broker: Broker,
    isolation: Isolation,
    /// One pull of an image at a time, however many containers want it.
    pulls: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Images {
    pub(crate) fn new(config: ImageConfig, broker: Broker, isolation: Isolation) -> Self {
        Self { config, broker, isolation, pulls: Mutex::default() }
    }

    /// The program of an image that needs no pull.
    pub(crate) fn present(&self, image: &str) -> Result<Option<Program>, ImageError> {
        if let Some(mapping) = self.config.map.find(image) {
            return Ok(Some(mapping.program()));
        }
        let name = without_tag(image);
        if self.config.own_images.iter().any(|own| map::fits(own, image) || map::fits(own, name)) {
            return Ok(Some(self.own(&[])));
        }
        if let Some((_, command)) = self.config.own_commands.iter().find(|(own, _)| own == name) {
            return Ok(Some(self.own(command)));
        }
        match Package::parse(image) {
            Some(package) => package?.installed(&self.config.cache),
            None if is_reference(image) => Err(ImageError::Unknown),
            None => Err(ImageError::BadName(image.to_owned())),
        }
    }

    /// Pulls a package; `progress` is told what the installer prints.
    pub(crate) async fn pull(&self, image: &str, progress: impl Fn(&str) + Send) -> Result<Program, ImageError> {
        let package = Package::parse(image).ok_or(ImageError::Unknown)??;
        let turn = self.pulls.lock().entry(image.to_owned()).or_default().clone();
        let _turn = turn.lock().await;
        // Somebody else may have pulled it meanwhile.
        if let Some(program) = package.installed(&self.config.cache)? {
            return Ok(program);
        }
        package.install(&self.config.cache, &self.broker, progress).await
    }

    fn own(&self, command: &[String]) -> Program {
        let (path, mounts) = match self.isolation {
            Isolation::Namespaces => {
                let (source, target) = (self.config.own_program.clone(), PathBuf::from(OWN_PATH));
                (OWN_PATH, vec![Mount { source, target, read_only: true }])
            }
            // What starts the container is that program, and its user may not see the folder that it lies in.
            Isolation::None => (SELF_PATH, Vec::new()),
        };
        let entrypoint = std::iter::once(path.to_owned()).chain(command.iter().cloned()).collect();
        Program { entrypoint, mounts, own: true, ..Program::default() }
    }
}

/// Why the package that an image names could not be pulled on this machine, as far as that is known without trying.
pub fn obstacle(image: &str, map: &ImageMap, cache: &Path) -> Option<String> {
    if map.find(image).is_some() {
        return None;
    }
    let package = match Package::parse(image)? {
        Ok(package) => package,
        Err(error) => return Some(error.to_string()),
    };
    let is_there = package.installed(cache).is_ok_and(|program| program.is_some());
    package.commands(cache).err().filter(|_| !is_there).map(|error| error.to_string())
}

/// The folder that a program needs to see: everything installed along with it.
fn prefix_of(program: &Path) -> PathBuf {
    let folder = program.parent().unwrap_or(program);
    let is_bin = folder.file_name().is_some_and(|name| name == "bin");
    folder.parent().filter(|_| is_bin).unwrap_or(folder).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_replace_what_the_image_says() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let program = Program { entrypoint: words("run it"), arguments: words("well"), ..Program::default() };
        let table =
            [("", "", "run it well"), ("", "badly", "run it badly"), ("do", "", "do"), ("do", "that", "do that")];
        for (command, arguments, expected) in table {
            assert_eq!(program.command_line(&words(command), &words(arguments)), words(expected));
        }
    }
}
