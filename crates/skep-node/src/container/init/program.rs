//! Starts a program, and says why when it does not start.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FileType, fstat};
use rustix::io::FdFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, ioctl_tiocsctty, set_parent_process_death_signal, setsid, waitpid,
};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};
use rustix::termios::isatty;

use super::identity::{self, Way};
use super::privileges;
use crate::container::StartError;
use crate::container::protocol::{Place, Program};
use crate::container::stream::NOTHING;
use crate::sys::{self, Fork};

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub pid: Pid,
    pub terminal: Option<OwnedFd>,
}

/// Starts a program with the streams that came along, or on a new terminal.
pub(super) fn start(program: &Program, given: &[OwnedFd]) -> Result<Started, StartError> {
    let (terminal, own_streams) = if program.tty {
        let (near, far) = open_terminal().map_err(StartError::kernel("open a terminal"))?;
        (Some(near), vec![far])
    } else {
        (None, Vec::new())
    };
    let (streams, kept) = if program.tty { (&own_streams[..], given) } else { given.split_at(given.len().min(3)) };
    let (mut report, to_report) = pipe_with(PipeFlags::CLOEXEC)
        .map(|(from, to)| (File::from(from), to))
        .map_err(|error| fork_error(error.into()))?;
    let init = getpid();
    match sys::fork_alone().map_err(fork_error)? {
        Fork::Child => {
            let Err(error) = become_program(program, streams, kept, init);
            let text = serde_json::to_vec(&error).unwrap_or_default();
            // A report that cannot be written means that nobody waits for it.
            let _ = File::from(to_report).write_all(&text);
            std::process::exit(127)
        }
        Fork::Parent(pid) => {
            drop(to_report);
            let mut text = Vec::new();
            report.read_to_end(&mut text).map_err(fork_error)?;
            if text.is_empty() {
                return Ok(Started { pid, terminal });
            }
            // Its end is of no interest beyond its report.
            let _ = waitpid(Some(pid), WaitOptions::empty());
            Err(serde_json::from_slice(&text).unwrap_or_else(|error| fork_error(error.into())))
        }
    }
}

fn fork_error(cause: io::Error) -> StartError {
    StartError::kernel("start a process")(cause)
}

fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = openpt(flags)?;
    unlockpt(&near)?;
    let far = ioctl_tiocgptpeer(&near, flags)?;
    Ok((near, far))
}

/// The child until it is another program.
fn become_program(
    program: &Program,
    streams: &[OwnedFd],
    kept: &[OwnedFd],
    init: Pid,
) -> Result<std::convert::Infallible, StartError> {
    sys::reset_all().map_err(StartError::kernel("reset the signals"))?;
    if program.place == Place::Container {
        setsid().map_err(|error| StartError::kernel("start a session")(error.into()))?;
    }
    attach(streams, program.tty)
        .and_then(|()| if program.place == Place::Container { own_nothing() } else { Ok(()) })
        .map_err(StartError::kernel("attach the standard streams"))?;
    for descriptor in kept {
        rustix::io::fcntl_setfd(descriptor, FdFlags::empty())
            .map_err(|error| StartError::kernel("pass on a descriptor")(error.into()))?;
    }
    if program.place == Place::Container {
        confine(program, streams, init.is_init())?;
    }
    // A change of user would have undone this.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| StartError::kernel("tie the process to its container")(error.into()))?;
    if getppid() != Some(init) {
        return Err(StartError::Gone);
    }
    if let Some(path) = &program.working_dir {
        std::env::set_current_dir(path)
            .map_err(|error| StartError::WorkingDir { path: path.clone(), cause: error.to_string() })?;
    }
    execute(program)
}

/// Standard input, output and error in this order; the last one serves for those that are missing.
fn attach(streams: &[OwnedFd], tty: bool) -> io::Result<()> {
    let stream = |number: usize| {
        streams.get(number).or(streams.last()).map(AsFd::as_fd).ok_or_else(|| io::Error::other("no streams came along"))
    };
    dup2_stdin(stream(0)?)?;
    dup2_stdout(stream(1)?)?;
    dup2_stderr(stream(2)?)?;
    if tty {
        ioctl_tiocsctty(stream(0)?)?;
    }
    Ok(())
}

/// Opens the device that stands for no input anew, as the container has it: by a descriptor that was opened outside the
/// container could change the owner and the mode of the machine's own.
fn own_nothing() -> io::Result<()> {
    let status = fstat(stdin())?;
    if FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice && !isatty(stdin()) {
        dup2_stdin(File::open(NOTHING)?)?;
    }
    Ok(())
}

fn confine(program: &Program, streams: &[OwnedFd], enclosed: bool) -> Result<(), StartError> {
    let way = identity::way(&program.identity, enclosed);
    if way == Way::Change {
        identity::give(streams, &program.identity);
    }
    if way == Way::Rename {
        identity::rename(&program.identity)?;
    }
    privileges::limit(program.capabilities.set()).map_err(StartError::kernel("limit the capabilities"))?;
    if way == Way::Change {
        identity::change(&program.identity)?;
    }
    privileges::drop_others(program.capabilities.set()).map_err(StartError::kernel("drop capabilities"))
}

fn execute(program: &Program) -> Result<std::convert::Infallible, StartError> {
    let (name, arguments) = program.argv.split_first().ok_or(StartError::NoProgram)?;
    let path = find(name, &program.env)?;
    let environment = program.env.iter().map(|(name, value)| (name, value));
    let error = Command::new(path).arg0(name).args(arguments).env_clear().envs(environment).exec();
    Err(not_executable(name, &error))
}

fn not_executable(name: &OsStr, cause: &io::Error) -> StartError {
    StartError::NotExecutable { program: name.to_string_lossy().into_owned(), cause: cause.to_string() }
}

/// The file that a program's name means.
fn find(name: &OsStr, env: &[(OsString, OsString)]) -> Result<PathBuf, StartError> {
    let not_found = || StartError::ProgramNotFound { program: name.to_string_lossy().into_owned() };
    if name.is_empty() {
        return Err(StartError::NoProgram);
    }
    if name.as_bytes().contains(&b'/') {
        return match check(Path::new(name)) {
            Ok(()) => Ok(PathBuf::from(name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_found()),
            Err(error) => Err(not_executable(name, &error)),
        };
    }
    let search = env.iter().rev().find(|(name, _)| name == "PATH").map_or(OsStr::new(DEFAULT_PATH), |(_, path)| path);
    std::env::split_paths(search).map(|folder| folder.join(name)).find(|path| check(path).is_ok()).ok_or_else(not_found)
}

/// Whether a file can be a program.
fn check(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}
