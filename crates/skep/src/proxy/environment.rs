//! Variables for the server from a folder of files, as agents of secret stores write them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use skep_api::sensitive::Sensitive;

/// The variables of all files in a folder, the later ones by name counting. A folder that is missing has none; a file
/// that makes no sense is left out, and that is told.
pub(super) fn read_folder(folder: &Path) -> anyhow::Result<BTreeMap<String, Sensitive>> {
    let unreadable = || format!("env_file_dir: cannot read {}", folder.display());
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries.with_context(unreadable)?,
    };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b".")));
    files.sort();
    let mut variables = BTreeMap::new();
    for file in files {
        match fs::read_to_string(&file).map_err(|error| error.to_string()).and_then(|text| read(&text)) {
            Ok(found) => variables.extend(found),
            Err(reason) => tracing::warn!(file = %file.display(), reason, "left out of the environment"),
        }
    }
    Ok(variables)
}

/// The variables of one file. Values are taken as they are, quotes included.
fn read(text: &str) -> Result<BTreeMap<String, Sensitive>, String> {
    let lines = text.lines().map(str::trim).enumerate();
    let mut variables = BTreeMap::new();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let line = line.strip_prefix("export ").unwrap_or(line);
        match line.split_once('=').filter(|(name, _)| !name.trim().is_empty()) {
            Some((name, value)) => variables.insert(name.trim().to_owned(), value.into()),
            None => return Err(format!("line {} is no NAME=VALUE", index + 1)),
        };
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_variables_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a", "# comment\n\nexport ONE=1\nTWO=\"a=b\"\n");
        write("b", "ONE=2\r\n");
        write("c", "THREE=3\n=4\n");
        write(".hidden", "FOUR=4\n");
        let found = read_folder(folder.path()).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(found, [("ONE", "2"), ("TWO", "\"a=b\"")]);
        assert!(read_folder(Path::new("/no/such/folder")).unwrap().is_empty());
    }
}
