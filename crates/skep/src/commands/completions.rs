//! `skep completions`.

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output;

/// The generators offer hidden commands too, so they get a command line without them.
fn visible(command: &Command) -> Command {
    let mut visible = Command::new("skep").version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = command.get_about() {
        visible = visible.about(about.clone());
    }
    visible.subcommands(command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned())
}

pub(super) fn run(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&Cli::command()), "skep", &mut script);
    output::print(&String::from_utf8(script)?)
}
