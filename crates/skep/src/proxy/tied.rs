//! A command that ends with the proxy which started it, however that ends.
//!
//! The command is started as this program once more, which asks the kernel for that and then becomes the command: process
//! number, standard streams, signals and exit code are the command's own. The kernel goes by the thread that has started it.
//! Threads of the proxy's runtime live as long as the proxy, because nothing in it blocks in place.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use skep_proxy::stdio::ChildProcess;

use super::program::is_startable;

/// The first argument of this program when it is to become a command. The number of its parent follows, and the command.
const NAME: &str = "skep-tied-command";
pub(super) const ITSELF: &str = "/proc/self/exe";
/// As shells have it: what cannot be started, and what is not there.
const NO_PROGRAM: i32 = 126;
const NOT_FOUND: i32 = 127;

/// The process of a command that ends with this one. What cannot be started is left as it is, so that whoever tries is told
/// why.
pub(super) fn tied(command: Vec<OsString>) -> ChildProcess {
    let is_tied = command.first().is_some_and(|program| is_startable(program)) && Path::new(ITSELF).exists();
    let mut words = if is_tied {
        let parent = std::process::id().to_string();
        [ITSELF.into(), NAME.into(), parent.into()].into_iter().chain(command).collect()
    } else {
        command
    };
    let program = if words.is_empty() { OsString::new() } else { words.remove(0) };
    ChildProcess { program, arguments: words, ..ChildProcess::default() }
}

/// Becomes the command that this process was started for, if it was started for one, and then never returns.
pub fn become_command() {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_none_or(|name| name != NAME) {
        return;
    }
    let parent = arguments.next().and_then(|parent| Pid::from_raw(parent.to_str()?.parse().ok()?));
    let Some(program) = arguments.next() else { std::process::exit(NOT_FOUND) };
    // Whoever cannot ask for it can still be of use.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != parent {
        // It has ended before the kernel knew.
        std::process::exit(NO_PROGRAM);
    }
    let error = Command::new(&program).args(arguments).exec();
    eprintln!("cannot start {}: {error}", program.display());
    std::process::exit(if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NO_PROGRAM })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_started_is_left_as_it_is() {
        let words = |process: ChildProcess| {
            let words = std::iter::once(process.program).chain(process.arguments);
            words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>()
        };
        let tied = |command: &[&str]| words(tied(command.iter().map(OsString::from).collect()));
        for command in [&["/no/such/program", "a"][..], &["no-such-program"], &["/"], &[""]] {
            assert_eq!(tied(command), command);
        }
        let parent = std::process::id().to_string();
        for command in [["/bin/sh", "-c"], ["sh", "--"]] {
            assert_eq!(tied(&command), [&[ITSELF, NAME, &parent], &command[..]].concat());
        }
    }
}
