//! One file per command. Each resolves its flags into settings, then acts.

mod api_server;
mod completions;
pub mod crds;
mod demo;
mod reference;
mod up;
mod version;

use crate::cli::Command;

/// Runs a command.
pub fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::ApiServer(args) => api_server::run(&args.into()),
        Command::Crds(args) => crds::run(&args.try_into()?),
        Command::Demo(args) => demo::run(args),
        Command::Up(args) => up::run(args.try_into()?),
        Command::Version(args) => version::run(args.output),
        Command::Completions(args) => completions::run(args.shell),
        Command::Reference(args) => reference::run(&args),
    }
}
