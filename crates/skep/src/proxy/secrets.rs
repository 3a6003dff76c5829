//! Secrets of a workload, which its pod has in its environment or in files.

use std::path::Path;

use skep_api::names::env::{secret, secret_alias, workload_secret};

use super::Variables;

/// The value of a secret under one of its names, or which variable has to be set.
pub(super) fn find(id: &str, variables: Variables<'_>) -> Result<String, String> {
    let names = [Some(workload_secret(id)), Some(secret(id)), secret_alias(id)];
    let found = names.iter().flatten().find_map(|name| variables(name).filter(|value| !value.is_empty()));
    found.ok_or_else(|| format!("set the variable {}", secret(id)))
}

/// The secret in a file, without the white space around it: most tools that write such a file end it with a line feed.
pub(super) fn read_file(path: &Path) -> Result<String, String> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{place} cannot be read: {error}"))?;
    match text.trim() {
        "" => Err(format!("{place} is empty")),
        kept => Ok(kept.to_owned()),
    }
}
