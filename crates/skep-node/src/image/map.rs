//! The image map: which command stands for which image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Program, place};
use crate::container::{Mount, is_in_a_home};

/// Entries in the order of the file; the first that fits is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageMap {
    entries: Vec<Mapping>,
}

/// One entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mapping {
    /// The image; `*` stands for any text.
    pub image: String,
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// Arguments that a container may replace.
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub working_dir: Option<PathBuf>,
    /// Folders of the machine that the program needs to see, besides those outside of the home folder.
    #[serde(default)]
    pub paths: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    images: Vec<Mapping>,
}

/// What is wrong with an image map.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    #[error("cannot read the image map {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error("the image map {} is not valid: {cause}", path.display())]
    Parse { path: PathBuf, cause: String },
    #[error("the image map {}: images[{index}].{problem}", path.display())]
    Entry { path: PathBuf, index: usize, problem: &'static str },
}

impl ImageMap {
    pub fn read(path: &Path) -> Result<Self, MapError> {
        let text = std::fs::read_to_string(path).map_err(|cause| MapError::Read { path: path.to_owned(), cause })?;
        let file: File = serde_saphyr::from_str(&text)
            .map_err(|cause| MapError::Parse { path: path.to_owned(), cause: cause.to_string() })?;
        for (index, entry) in file.images.iter().enumerate() {
            let wrong = |problem| MapError::Entry { path: path.to_owned(), index, problem };
            if entry.image.is_empty() {
                return Err(wrong("image is empty"));
            }
            if entry.command.is_empty() {
                return Err(wrong("command is empty: name the program to run"));
            }
        }
        Ok(Self { entries: file.images })
    }

    pub(super) fn find(&self, image: &str) -> Option<&Mapping> {
        self.entries.iter().find(|entry| fits(&entry.image, image))
    }
}

impl Mapping {
    pub(super) fn program(&self) -> Program {
        let bound = |path: PathBuf| Mount { source: path.clone(), target: path, read_only: true };
        // The program itself may live in the home folder, which containers do not see otherwise.
        let program = self.command.first().and_then(|program| place::find(program));
        let needed = program.map(|program| super::prefix_of(&program)).filter(|prefix| is_in_a_home(prefix));
        Program {
            entrypoint: self.command.clone(),
            arguments: self.args.clone(),
            env: self.env.clone().into_iter().collect(),
            working_dir: self.working_dir.clone(),
            mounts: needed.into_iter().chain(self.paths.clone()).map(bound).collect(),
            own: false,
        }
    }
}

/// Whether an image is meant by a pattern.
pub(super) fn fits(pattern: &str, image: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == image };
    let Some(rest) = image.strip_prefix(before) else { return false };
    let starts = rest.char_indices().map(|(start, _)| start).chain([rest.len()]);
    starts.into_iter().any(|start| fits(after, &rest[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let table = [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*/server:*", "ghcr.io/x/server:1", true),
            ("*/server:*", "ghcr.io/x/server", false),
            ("*", "", true),
        ];
        for (pattern, image, expected) in table {
            assert_eq!(fits(pattern, image), expected, "{pattern} {image}");
        }
    }

    #[test]
    fn files_are_checked() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("images.yaml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            ImageMap::read(&path).map_err(|error| error.to_string())
        };
        let map = read("images:\n- image: 'x/*'\n  command: [echo, hi]\n  env: {A: b}\n").unwrap();
        let program = map.find("x/y:1").unwrap().program();
        assert_eq!(
            (program.entrypoint, program.env),
            (vec!["echo".into(), "hi".into()], vec![("A".into(), "b".into())])
        );
        assert!(map.find("z").is_none());
        assert!(read("images:\n- image: x\n  command: []\n").unwrap_err().contains("images[0].command is empty"));
        assert!(read("images:\n- image: x\n  comand: [a]\n").unwrap_err().contains("comand"));
        assert!(ImageMap::read(&folder.path().join("absent")).is_err());
    }
}
