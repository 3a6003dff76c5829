//! Asks the kernel for namespaces, and says what to do where it refuses.

use std::fs;
use std::io;

use crate::container::{LaunchError, Root, World, try_world};
use crate::sys::Namespaces;

/// What the kernel refused, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("the kernel refuses to {what}: {cause}")]
pub struct Refusal {
    /// What was asked for.
    pub what: String,
    /// The kernel's answer.
    pub cause: String,
    /// What the owner of the machine can do: alternatives, one a line.
    pub remedy: String,
}

/// Tries to make the namespaces that [`super::run_inside`] needs, in a process that is gone afterwards.
pub fn probe() -> Result<(), Refusal> {
    let world = World { root: Root::Machine, hostname: None, network: false };
    let (what, cause, number) = match try_world(Namespaces::User, world) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => ("mount a /proc for new process numbers".to_owned(), error.to_string(), None),
        Err(LaunchError::Namespaces(cause)) => parts("make namespaces", &cause),
        Err(LaunchError::Map(cause)) => parts("map users into a new user namespace", &cause),
        Err(LaunchError::Start(cause)) => parts("start a process in new namespaces", &cause),
    };
    Err(Refusal { what, cause, remedy: remedy(&Machine::look(), number) })
}

fn parts(what: &str, cause: &io::Error) -> (String, String, Option<i32>) {
    (what.to_owned(), cause.to_string(), cause.raw_os_error())
}

/// The settings of a machine that decide about namespaces.
#[derive(Debug, Default, PartialEq, Eq)]
struct Machine {
    userns_clone: Option<u64>,
    max_user_namespaces: Option<u64>,
    apparmor_restricts: Option<u64>,
    seccomp: Option<u64>,
}

impl Machine {
    fn look() -> Self {
        let setting = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            userns_clone: setting("/proc/sys/kernel/unprivileged_userns_clone"),
            max_user_namespaces: setting("/proc/sys/user/max_user_namespaces"),
            apparmor_restricts: setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            seccomp: status
                .lines()
                .find_map(|line| line.strip_prefix("Seccomp:"))
                .and_then(|value| value.trim().parse().ok()),
        }
    }
}

/// What helps, given the settings and the error of the kernel.
fn remedy(machine: &Machine, number: Option<i32>) -> String {
    let mut lines = Vec::new();
    if machine.userns_clone == Some(0) {
        lines.push("sudo sysctl -w kernel.unprivileged_userns_clone=1");
    }
    if machine.max_user_namespaces == Some(0) || number == Some(libc::ENOSPC) {
        lines.push("sudo sysctl -w user.max_user_namespaces=15000");
    }
    if machine.apparmor_restricts == Some(1) {
        lines.push("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
    }
    if machine.seccomp == Some(2) {
        lines.push(
            "in a container: start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined",
        );
        lines.push("in a pod: set securityContext.seccompProfile.type to Unconfined and procMount to Unmasked");
    }
    if matches!(number, Some(libc::EINVAL | libc::ENOSYS)) {
        lines.push("use a kernel of at least 5.12 with CONFIG_USER_NS=y");
    }
    if lines.is_empty() {
        lines.push("run as root, or outside of the container or sandbox that this process is in");
    }
    lines.push("or go on without: --isolation=none");
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_names_the_setting_that_is_in_the_way() {
        let open = Machine { userns_clone: Some(1), max_user_namespaces: Some(9), ..Machine::default() };
        assert!(!remedy(&open, Some(libc::EPERM)).contains("sysctl"));
        let debian = Machine { userns_clone: Some(0), ..Machine::default() };
        assert!(remedy(&debian, Some(libc::EPERM)).contains("kernel.unprivileged_userns_clone=1"));
        let ubuntu = Machine { apparmor_restricts: Some(1), ..Machine::default() };
        assert!(remedy(&ubuntu, Some(libc::EACCES)).contains("kernel.apparmor_restrict_unprivileged_userns=0"));
        let full = remedy(&Machine::default(), Some(libc::ENOSPC));
        assert!(full.contains("user.max_user_namespaces"));
        let container = Machine { seccomp: Some(2), ..Machine::default() };
        assert!(remedy(&container, Some(libc::EPERM)).contains("seccomp=unconfined"));
        assert!(full.ends_with("--isolation=none"));
    }
}
