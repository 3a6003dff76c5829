//! Child processes that never outlive the test that started them, however the test ends.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The shell stands between us and the program. It holds the reading end of a pipe whose writing end is ours alone:
/// when we close it, or die in any way, the read ends and the program is killed. The shell ignores signals, because
/// those that are sent to the whole process group reach it too, and the program may take its time to stop. (Asking the
/// kernel for a signal on the parent's death would need unsafe code in the forked child.) `$0` is a file for the
/// program's process id.
const GUARD: &str = r#"
trap '' TERM HUP INT QUIT
exec 3<&0
(trap - TERM HUP INT QUIT; exec "$@") 3<&- </dev/null &
program=$!
echo "$program" >"$0"
{ read -r _ <&3; kill -KILL "$program"; } 2>/dev/null &
exec 3<&-
wait "$program"
"#;

/// A running program, killed on drop.
#[derive(Debug)]
pub struct Process {
    pub name: &'static str,
    log: PathBuf,
    pid: PathBuf,
    guard: Child,
    lifeline: Option<ChildStdin>,
}

impl Process {
    /// Starts a program whose output goes to `<logs>/<name>.log`, and its process id to `<logs>/<name>.pid`.
    pub fn start(name: &'static str, program: &Path, arguments: &[String], logs: &Path) -> io::Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let output = File::create(&log)?;
        let pid = logs.join(format!("{name}.pid"));
        // Not that of a program that was here before.
        File::create(&pid)?;
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD])
            .arg(&pid)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let lifeline = guard.stdin.take();
        Ok(Self { name, log, pid, guard, lifeline })
    }

    /// What it has printed so far.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// What the program holds in memory, in bytes; none before it runs and after its end.
    pub fn resident_bytes(&self) -> Option<u64> {
        let pid = std::fs::read_to_string(&self.pid).ok()?;
        let status = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("status")).ok()?;
        let kibibytes: u64 =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())?;
        Some(kibibytes * 1024)
    }

    /// The last lines of its output when it has ended on its own.
    pub fn last_words(&mut self) -> Option<String> {
        let status = self.guard.try_wait().ok()??;
        let log = self.output();
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::time::{Duration, Instant};

    use super::*;

    fn is_running(pid: &str) -> bool {
        // A killed process is a zombie until the guard has waited for it.
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    }

    fn started_in(folder: &Path) -> (Process, String) {
        let pid_file = folder.join("pid");
        let script = format!("echo $$ > {}; exec sleep 600", pid_file.display());
        let process = Process::start("sleeper", Path::new("/bin/sh"), &["-c".into(), script], folder).unwrap();
        (process, wait_for_pid(&pid_file))
    }

    fn wait_for_pid(file: &Path) -> String {
        let limit = Instant::now() + Duration::from_secs(10);
        loop {
            let pid = std::fs::read_to_string(file).unwrap_or_default();
            if pid.ends_with('\n') {
                return pid.trim().to_owned();
            }
            assert!(Instant::now() < limit, "the program did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_dropped_process_is_dead() {
        let folder = tempfile::tempdir().unwrap();
        let (process, pid) = started_in(folder.path());
        assert!(is_running(&pid));
        // The shell in between may be slower than the program.
        let limit = Instant::now() + Duration::from_secs(10);
        while process.resident_bytes().is_none_or(|bytes| bytes == 0) {
            assert!(Instant::now() < limit, "the program holds nothing in memory");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(process);
        assert!(!is_running(&pid));
    }

    /// What `timeout`, a supervisor or a cancelled CI job does.
    #[test]
    fn a_signal_to_the_group_kills_a_program_that_ignores_it() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let script = format!("trap '' TERM; echo $$ > {}; while :; do sleep 1; done", pid_file.display());
        let group = Command::new("/bin/sh")
            .args(["-c", GUARD, "/dev/null", "/bin/sh", "-c", &script])
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut guard = group.unwrap();
        let pid = wait_for_pid(&pid_file);
        let killed = Command::new("kill").args(["-TERM", "--", &format!("-{}", guard.id())]).status().unwrap();
        assert!(killed.success());
        assert!(is_running(&pid), "it ignores the signal");
        drop(guard.stdin.take());
        guard.wait().unwrap();
        let limit = Instant::now() + Duration::from_secs(10);
        while is_running(&pid) {
            assert!(Instant::now() < limit, "the program outlived its test");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn an_early_end_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c".to_owned(), "echo cannot go on; exit 7".to_owned()];
        let mut process = Process::start("failing", Path::new("/bin/sh"), &arguments, folder.path()).unwrap();
        let limit = Instant::now() + Duration::from_secs(10);
        let last_words = loop {
            if let Some(last_words) = process.last_words() {
                break last_words;
            }
            assert!(Instant::now() < limit, "the end was not noticed");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(last_words.contains("exit status: 7") && last_words.contains("cannot go on"), "{last_words}");
    }
}
