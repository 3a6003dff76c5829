//! The `skep` command. Everything it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    skep::run(std::env::args_os())
}
