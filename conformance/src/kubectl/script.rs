//! Scripts as they are written in `conformance/kubectl`.

use serde::Deserialize;

use crate::files::{LoadError, entries, file_stem, read};

/// A list of commands, run one after the other in a namespace of their own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The file name, and the name of the namespace.
    #[serde(skip)]
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    pub steps: Vec<Step>,
}

/// A command, or the end of one that runs beside the others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The arguments of kubectl, quoted as in a shell. Files are those of `manifests/`.
    #[serde(default)]
    pub run: String,
    /// The command goes on under this name, while the script does, until it is collected.
    #[serde(default)]
    pub follow: Option<String>,
    /// Ends the command of this name; the output of this step is what it has printed.
    #[serde(default)]
    pub collect: Option<String>,
    /// A pattern: the command is repeated until its output matches, and only the last output is recorded; what is
    /// collected is waited for.
    #[serde(default)]
    pub until: Option<String>,
    /// What `kubectl edit` starts.
    #[serde(default)]
    pub editor: Option<String>,
    /// A pattern: only matching lines are recorded.
    #[serde(default)]
    pub only: Option<String>,
    /// The order of lines is a matter of luck, and they are recorded sorted.
    #[serde(default)]
    pub sorted: bool,
}

/// Reads every script, in the order of names.
pub fn load() -> Result<Vec<Script>, LoadError> {
    let mut scripts = Vec::new();
    for path in entries(&super::folder())? {
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let mut script: Script = serde_saphyr::from_str(&read(&path)?)
            .map_err(|error| LoadError::Parse { path: path.clone(), message: error.to_string() })?;
        script.name = file_stem(&path);
        scripts.push(script);
    }
    Ok(scripts)
}
