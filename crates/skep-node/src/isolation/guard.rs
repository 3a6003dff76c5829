//! Removes a folder when the process that uses it is gone, however that has ended.
//!
//! The guard is this program, started again. The end of its input is the end of the process that started it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The first argument of a guard; the folder is the second.
const NAME: &str = "skep-node-guard";
/// What is still being killed may write a last time: the folder is removed until it is gone.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// Starts a guard. `lock` stays open as long as the guard lives.
pub(super) fn start(folder: &Path, lock: OwnedFd) -> io::Result<()> {
    let (input, held) = io::pipe()?;
    // Signals from a terminal are not for it: it would be gone before its time.
    Command::new("/proc/self/exe")
        .args([OsStr::new(NAME), folder.as_os_str()])
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(input)
        .stdout(lock)
        .stderr(Stdio::null())
        .spawn()?;
    // Nobody closes this end but the kernel, with the process.
    let _ = held.into_raw_fd();
    Ok(())
}

/// Does the work of a guard and never returns, when this process was started as one.
pub(crate) fn become_guard() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|argument| argument != NAME) {
        return;
    }
    let _ = rustix::thread::set_name(c"skep-guard");
    // However it ends, it has ended.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    if let Some(folder) = arguments.next().map(PathBuf::from) {
        for _ in 0..ATTEMPTS {
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(PAUSE),
                _ => break,
            }
        }
    }
    std::process::exit(0)
}
