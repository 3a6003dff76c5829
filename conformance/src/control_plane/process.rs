//! Child processes that never outlive the test that started them, however the test ends.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The shell stands between us and the program. It holds the reading end of a pipe whose writing end is ours alone:
/// when we close it, or die in any way, the read ends and the program is killed. (Asking the kernel for a signal on
/// the parent's death would need unsafe code in the forked child.)
const GUARD: &str = r#"
exec 3<&0
"$@" 3<&- </dev/null &
program=$!
{ read -r _ <&3; kill -KILL "$program"; } 2>/dev/null &
exec 3<&-
wait "$program"
"#;

/// A running program, killed on drop.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) name: &'static str,
    log: PathBuf,
    guard: Child,
    lifeline: Option<ChildStdin>,
}

impl Process {
    /// Starts a program whose output goes to `<logs>/<name>.log`.
    pub(super) fn start(name: &'static str, program: &Path, arguments: &[String], logs: &Path) -> io::Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let output = File::create(&log)?;
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD, name])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let lifeline = guard.stdin.take();
        Ok(Self { name, log, guard, lifeline })
    }

    /// The last lines of its output when it has ended on its own.
    pub(super) fn last_words(&mut self) -> Option<String> {
        let status = self.guard.try_wait().ok()??;
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n");
        Some(format!("{} ended with {status}; its last words were:\n{tail}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // The guard exits once the program is dead; there is nothing to do about an error here.
        let _ = self.guard.wait();
    }
}
