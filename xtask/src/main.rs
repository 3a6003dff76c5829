//! `cargo xtask`: the project's own chores. Nothing here is shipped.

mod control_plane;
mod crd_diff;
mod redis;
mod soak;
mod test_run;
mod workspace;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

/// The project's own chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check and test everything: format, lints, dependencies, generated files, unit and end-to-end tests
    Test,
    /// Run the long forms of tests, and the benches
    Soak(soak::SoakArgs),
    /// Write the files that are generated from the source: CRDs and the reference pages
    Generate {
        /// Only say which files are out of date
        #[arg(long)]
        check: bool,
    },
    /// Show how our CRDs differ from those in a folder, descriptions aside
    ///
    /// Lines begin with + for what only ours have, - for what only theirs have, ~ for what differs. The exit code is 0
    /// when all differences are optional additions of ours; which of those were decided on is checked by a test.
    CrdDiff {
        /// A folder of CRD manifests
        folder: PathBuf,
    },
    /// Build the Kubernetes control plane for tests, once, and print the folder of its binaries
    ///
    /// KUBEBUILDER_ASSETS is honoured: when it is set, nothing is built and its value is printed.
    ControlPlane,
}

fn main() -> ExitCode {
    match run(Cli::parse().chore) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> anyhow::Result<ExitCode> {
    match chore {
        Chore::Test => Ok(test_run::run()),
        Chore::Soak(arguments) => soak::run(&arguments),
        Chore::Generate { check } => generate(check),
        Chore::CrdDiff { folder } => crd_diff::run(&folder),
        Chore::ControlPlane => {
            println!("{}", control_plane::ensure()?.display());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The program knows what it generates; this only runs it on the workspace.
fn generate(check: bool) -> anyhow::Result<ExitCode> {
    let mut command = Command::new(workspace::cargo());
    command.args(["run", "--quiet", "--package", "skep", "--", "reference"]).args(check.then_some("--check"));
    let status = command.arg(workspace::root()).current_dir(workspace::root()).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
