//! The `skep` command. Everything it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The processes between this one and its containers are this program, too.
    skep_node::become_helper();
    // And so is the beginning of a command that ends with its proxy.
    skep::become_command();
    skep::run(std::env::args_os())
}
