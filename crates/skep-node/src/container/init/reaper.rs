//! Takes note of processes that have ended, and ends those that have not.

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

use crate::container::Exit;

/// Every child that has ended since the last call, strangers included.
pub(super) fn reap() -> Vec<(Pid, Exit)> {
    let mut ended = Vec::new();
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if let Some(exit) = exit_of(status) {
            ended.push((pid, exit));
        }
    }
    ended
}

/// How a process ended, if it has.
pub(super) fn exit_of(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::with_code).or_else(|| status.terminating_signal().map(Exit::by_signal))
}

/// Kills all that this process started, however far removed. Each child that dies leaves its own children to this
/// process, so the next round finds them.
///
/// Process 1 of a namespace need not do this, for the kernel does; it costs it nothing.
pub(super) fn kill_all() {
    loop {
        for child in children() {
            // One that is gone already is what is wanted.
            let _ = kill_process(child, Signal::KILL);
        }
        if wait(WaitOptions::empty()).is_err() {
            return;
        }
    }
}

fn children() -> Vec<Pid> {
    let list = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw)).collect()
}
