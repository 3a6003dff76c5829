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
mod proxy;
mod reference;
mod status;
mod up;
mod version;

use crate::cli::{Command, ProxyCommand};
use crate::log::Telling;

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
        Command::Proxy(args) => match args.command {
            ProxyCommand::Run(args) => proxy::run(args),
        },
        Command::Run(args) => proxy::run(args.read()),
        Command::Status(args) => wait_for(status::run(args)),
        Command::Up(args) => up::run(args.try_into()?),
        Command::Version(args) => version::run(args.output),
        Command::Completions(args) => completions::run(args.shell),
        Command::Reference(args) => reference::run(&args),
    }
}

/// How a command tells what it notices. What runs in pods is read by programs.
pub(crate) fn telling(command: &Command) -> Telling {
    match command {
        Command::Run(args) => Telling::Json { debug: proxy::is_debugging(&args.read()) },
        Command::Proxy(args) => match &args.command {
            ProxyCommand::Run(args) if args.image.is_some() || proxy::is_debugging(args) => {
                Telling::Json { debug: proxy::is_debugging(args) }
            }
            ProxyCommand::Run(_) => Telling::Usual,
        },
        Command::Operator(_) if operator::is_read_by_programs() => Telling::Json { debug: false },
        _ => Telling::Usual,
    }
}

/// Runs a command that only talks to others.
fn wait_for(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(command)
}
