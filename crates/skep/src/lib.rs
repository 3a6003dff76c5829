//! The `skep` command: flags ([`cli`]) are resolved into settings, and [`commands`] act on those.
//!
//! Standard output is data, standard error is talk.

mod api_server;
pub mod cli;
mod cluster;
pub mod commands;
mod connection;
mod data_folder;
mod demo;
mod enclosed;
mod endpoint;
pub mod hint;
mod local;
mod log;
mod machine;
mod objects;
pub mod output;
mod proxy;
pub mod reference;
mod screen;
mod service_range;
mod shell;
mod stop;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;

pub use proxy::become_command;

/// Exit code of a command that could not do what it was asked to.
const FAILURE: u8 = 1;

/// Runs the command line and returns its exit code: 0 done, 1 failed, 2 misused, 3 nothing runs, 4 not ready yet.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let telling = commands::telling(&cli.command);
    log::begin(telling);
    match commands::dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            log::end(telling, &hint::report(&error));
            ExitCode::from(hint::exit_code(&error).unwrap_or(FAILURE))
        }
    }
}

/// Help and version requests are not errors; everything else is told on standard error with exit code 2.
fn usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe && !error.use_stderr() => ExitCode::from(FAILURE),
        _ => u8::try_from(error.exit_code()).map_or(ExitCode::from(FAILURE), ExitCode::from),
    }
}
