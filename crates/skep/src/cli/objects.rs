//! The flags of the commands for objects, named as those of kubectl are.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::DataArgs;

/// Whose objects.
#[derive(Debug, Clone, Args)]
pub struct NamespaceArgs {
    /// The namespace of the objects.
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
}

/// Print what pods have printed.
///
/// The name is that of a pod, or of anything that has pods: a Deployment, a StatefulSet, an MCPServer. With several pods,
/// each line begins with the name of its pod.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  skep logs echo -f\n  skep logs deployment/echo --tail 20\n  skep logs echo-0 --previous"
)]
pub struct LogsArgs {
    /// The pod or its owner: NAME or KIND/NAME.
    pub name: String,
    /// Go on printing until the pods end.
    #[arg(short, long)]
    pub follow: bool,
    /// Print what the run before the last restart has printed.
    #[arg(short, long, conflicts_with = "follow")]
    pub previous: bool,
    /// How many lines to begin with. All of them unless given.
    #[arg(long, value_name = "LINES")]
    pub tail: Option<u32>,
    /// The container, of pods that have several. The first one unless given.
    #[arg(short, long, value_name = "NAME")]
    pub container: Option<String>,
    #[command(flatten)]
    pub namespace: NamespaceArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

/// Make objects as manifests say.
///
/// Objects that do not exist are created, others are changed where the manifest differs from them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  skep apply -f examples/echo.yaml\n  cat manifest.yaml | skep apply -f -")]
pub struct ApplyArgs {
    /// A manifest, or a folder of manifests; - reads standard input. May be given several times.
    #[arg(short, long, required = true, value_name = "FILE|FOLDER", value_hint = ValueHint::AnyPath)]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    pub namespace: NamespaceArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

/// Show objects.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep get pods\n  \
    skep get mcpservers --all-namespaces\n  \
    skep get deployment echo -o yaml")]
pub struct GetArgs {
    /// The kind: its name in any form, also its short name.
    pub kind: String,
    /// The name of an object. All of the kind are shown unless given.
    pub name: Option<String>,
    /// How the objects are written.
    #[arg(short, long, value_enum, default_value_t = ObjectFormat::Table, value_name = "FORMAT")]
    pub output: ObjectFormat,
    /// Show only objects with these labels.
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "name")]
    pub selector: Option<String>,
    /// Show the objects of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["name", "namespace"])]
    pub all_namespaces: bool,
    #[command(flatten)]
    pub namespace: NamespaceArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

/// Forms of printed objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// Columns for people.
    Table,
    /// More columns.
    Wide,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// The kind and the name.
    Name,
}

/// Delete objects, and wait until they are gone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  skep delete deployment echo\n  skep delete -f examples/echo.yaml --ignore-not-found",
    group = ArgGroup::new("objects").args(["kind", "filename"]).required(true)
)]
pub struct DeleteArgs {
    /// The kind: its name in any form, also its short name.
    #[arg(requires = "names")]
    pub kind: Option<String>,
    /// The names of the objects.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Delete what these manifests name; - reads standard input. May be given several times.
    #[arg(short, long, value_name = "FILE|FOLDER", value_hint = ValueHint::AnyPath)]
    pub filename: Vec<PathBuf>,
    /// Objects that do not exist are no error.
    #[arg(long)]
    pub ignore_not_found: bool,
    /// Do not wait until the objects are gone.
    #[arg(long)]
    pub no_wait: bool,
    #[command(flatten)]
    pub namespace: NamespaceArgs,
    #[command(flatten)]
    pub data: DataArgs,
}
