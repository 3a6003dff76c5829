//! `skep down`.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::cli::DownArgs;
use crate::data_folder::DataFolder;
use crate::hint::Hinted;

const PAUSE: Duration = Duration::from_millis(20);
/// A killed process is gone as soon as the kernel has got round to it.
const KILL_LIMIT: Duration = Duration::from_secs(30);

pub(super) fn run(args: DownArgs) -> anyhow::Result<()> {
    let folder = DataFolder::try_from(args.data)?;
    let Some(process) = folder.occupant().with_context(|| cannot_look(&folder))? else {
        eprintln!("nothing runs on {}", folder.path().display());
        return Ok(());
    };
    send(&folder, process, Signal::TERM)?;
    let limit = Duration::from_secs(args.timeout);
    if is_gone(&folder, process, limit)? {
        eprintln!("stopped: process {process}");
        return Ok(());
    }
    if !args.force {
        let problem = format!("skep up (process {process}) has not stopped in {} s", args.timeout);
        return Err(Hinted::new(problem).hint("wait longer with --timeout, or kill it with --force").into());
    }
    send(&folder, process, Signal::KILL)?;
    if is_gone(&folder, process, KILL_LIMIT)? {
        eprintln!("killed: process {process}");
        return Ok(());
    }
    Err(Hinted::new(format!("process {process} cannot be killed")).hint("see what holds it: ps -l, dmesg").into())
}

fn cannot_look(folder: &DataFolder) -> String {
    format!("cannot see what runs on {}", folder.path().display())
}

/// Signals the process that uses the folder, and no other that may have its number by now.
fn send(folder: &DataFolder, process: i32, signal: Signal) -> anyhow::Result<()> {
    let Some(pid) = Pid::from_raw(process) else {
        let problem = format!("{} is used by a process that cannot be seen from here", folder.path().display());
        return Err(Hinted::new(problem).hint("stop it from outside of this container").into());
    };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    if folder.occupant().with_context(|| cannot_look(folder))? != Some(process) {
        return Ok(());
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(Hinted::new(format!("process {process} cannot be stopped: {error}"))
            .hint("it belongs to another user, who can stop it")
            .into()),
    }
}

/// Waits until the process no longer uses the folder.
fn is_gone(folder: &DataFolder, process: i32, limit: Duration) -> anyhow::Result<bool> {
    let begun = Instant::now();
    while folder.occupant().with_context(|| cannot_look(folder))? == Some(process) {
        if begun.elapsed() > limit {
            return Ok(false);
        }
        sleep(PAUSE);
    }
    Ok(true)
}
