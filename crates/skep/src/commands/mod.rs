//! One file per command. Each resolves its flags into settings, then acts.

mod completions;
pub mod crds;
mod version;

use crate::cli::{Command, ReferencePage};
use crate::{output, reference};

/// Runs a command.
pub fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Crds(args) => crds::run(&args.try_into()?),
        Command::Version(args) => version::run(args.output),
        Command::Completions(args) => completions::run(args.shell),
        Command::Reference(args) => output::print(&match args.page {
            ReferencePage::Cli => reference::cli::page(),
            ReferencePage::Crds => reference::crds::page(),
        }),
    }
}
