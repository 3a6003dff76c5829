//! A folder whose files change all at once, as programs expect of configMap and secret volumes.
//!
//! The files are in a folder named after the moment they were written. `..data` is a link to it, and every file is a
//! link through `..data`: replacing that one link replaces all files at the same time.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use k8s_openapi::jiff::Timestamp;

const DATA: &str = "..data";
const NEXT: &str = "..data_tmp";

/// The content of a volume: files by their path in it.
pub(crate) type Files = BTreeMap<PathBuf, FileContent>;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FileContent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

impl std::fmt::Debug for FileContent {
    /// The bytes may be secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FileContent").field("bytes", &self.bytes.len()).field("mode", &self.mode).finish()
    }
}

/// Makes `folder` show exactly `files`. Nothing is written when it does already. `finish` is given what is written
/// before anybody sees it.
pub(crate) fn write(folder: &Path, files: &Files, finish: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    if let Some(bad) = files.keys().find(|path| !is_plain(path)) {
        let told = format!("the path {} leaves the volume", bad.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, told));
    }
    fs::create_dir_all(folder)?;
    let data = folder.join(DATA);
    let before = fs::read_link(&data).ok();
    if before.is_some() && current(&data).is_some_and(|current| current == *files) {
        return Ok(());
    }
    let version = PathBuf::from(format!("..{}", Timestamp::now().strftime("%Y_%m_%d_%H_%M_%S.%9f")));
    for (path, content) in files {
        let path = folder.join(&version).join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &content.bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(content.mode))?;
    }
    fs::create_dir_all(folder.join(&version))?;
    finish(&folder.join(&version))?;
    let next = folder.join(NEXT);
    // Left behind when an earlier attempt was cut short.
    let _ = fs::remove_file(&next);
    symlink(&version, &next)?;
    fs::rename(&next, &data)?;
    let visible: Vec<&std::ffi::OsStr> = files.keys().filter_map(|path| path.iter().next()).collect();
    for name in &visible {
        let link = folder.join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(name), &link)?;
        }
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = name == DATA || name == version.as_os_str() || visible.contains(&name.as_os_str());
        if !ours && entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if !ours {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a path stays where it is put.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.components().next().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_)))
        && !path.as_os_str().as_encoded_bytes().starts_with(b"..")
}

fn current(data: &Path) -> Option<Files> {
    let mut files = Files::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(data.join(&folder)).ok()? {
            let entry = entry.ok()?;
            let path = folder.join(entry.file_name());
            let metadata = entry.metadata().ok()?;
            if metadata.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(entry.path()).ok()?;
                files.insert(path, FileContent { bytes, mode: metadata.permissions().mode() & 0o7777 });
            }
        }
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        let content = |text: &str| FileContent { bytes: text.as_bytes().to_vec(), mode: 0o644 };
        entries.iter().map(|(path, text)| (PathBuf::from(path), content(text))).collect()
    }

    fn written(folder: &Path, files: &Files) -> io::Result<()> {
        write(folder, files, |_| Ok(()))
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.starts_with("..2"));
        names.sort();
        names
    }

    #[test]
    fn files_change_together() {
        let folder = TempDir::new().unwrap();
        let folder = folder.path();
        written(folder, &files(&[("a", "1"), ("deep/b", "2")])).unwrap();
        assert_eq!(names(folder), ["..data", "a", "deep"]);
        assert_eq!(fs::read_to_string(folder.join("deep/b")).unwrap(), "2");
        let version = fs::read_link(folder.join(DATA)).unwrap();
        written(folder, &files(&[("a", "1"), ("deep/b", "2")])).unwrap();
        assert_eq!(fs::read_link(folder.join(DATA)).unwrap(), version, "nothing changed");

        written(folder, &files(&[("a", "3"), ("c", "4")])).unwrap();
        assert_eq!(names(folder), ["..data", "a", "c"]);
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "3");
        assert!(!folder.join(version).exists());
        written(folder, &files(&[])).unwrap();
        assert_eq!(names(folder), ["..data"]);
    }

    #[test]
    fn modes_are_kept() {
        let folder = TempDir::new().unwrap();
        let content = FileContent { bytes: Vec::new(), mode: 0o400 };
        written(folder.path(), &Files::from([("key".into(), content)])).unwrap();
        assert_eq!(fs::metadata(folder.path().join("key")).unwrap().permissions().mode() & 0o777, 0o400);
    }

    #[test]
    fn nothing_leaves_the_folder() {
        let folder = TempDir::new().unwrap();
        for path in ["../x", "/x", "a/../../x", "..data", "", "."] {
            assert!(written(folder.path(), &files(&[(path, "")])).is_err(), "{path}");
        }
    }
}
