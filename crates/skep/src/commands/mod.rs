//! One file per command. Each resolves its flags into settings, then acts.

mod api_server;
mod apply;
mod completions;
pub mod crds;
mod delete;
mod demo;
mod doctor;
mod down;
mod get;
mod logs;
mod node;
mod operator;
mod reference;
mod status;
mod up;
mod version;

use crate::cli::Command;

/// Runs a command.
pub fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::ApiServer(args) => api_server::run(&args.into()),
        Command::Apply(args) => wait_for(apply::run(args)),
        Command::Crds(args) => crds::run(&args.try_into()?),
        Command::Delete(args) => wait_for(delete::run(args)),
        Command::Demo(args) => demo::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Down(args) => down::run(args),
        Command::Get(args) => wait_for(get::run(args)),
        Command::Logs(args) => wait_for(logs::run(args)),
        Command::Node(args) => node::run(args.try_into()?),
        Command::Operator(args) => operator::run(args.try_into()?),
        Command::Status(args) => wait_for(status::run(args)),
        Command::Up(args) => up::run(args.try_into()?),
        Command::Version(args) => version::run(args.output),
        Command::Completions(args) => completions::run(args.shell),
        Command::Reference(args) => reference::run(&args),
    }
}

/// Runs a command that only talks to others.
fn wait_for(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(command)
}
