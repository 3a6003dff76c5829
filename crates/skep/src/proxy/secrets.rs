//! Secrets of a workload, which its pod has in its environment.

use skep_api::names::env::{secret, secret_alias, workload_secret};

use super::Variables;

/// The value of a secret under one of its names, or which variable has to be set.
pub(super) fn find(id: &str, variables: Variables<'_>) -> Result<String, String> {
    let names = [Some(workload_secret(id)), Some(secret(id)), secret_alias(id)];
    let found = names.iter().flatten().find_map(|name| variables(name).filter(|value| !value.is_empty()));
    found.ok_or_else(|| format!("set the variable {}", secret(id)))
}
