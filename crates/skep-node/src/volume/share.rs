//! Whose volumes are: the group that the containers of a pod share them by (`fsGroup`), and the user who reads tokens.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use k8s_openapi::api::core::v1::{Pod, PodSpec};

/// Members may read what nobody writes.
const READ: u32 = 0o440;
/// And write to folders in which they do; what they make there belongs to the group again.
const FOLDER: u32 = 0o2770;
const READ_FOLDER: u32 = 0o2550;

/// Files that only their owner reads.
const PRIVATE: u32 = 0o600;

/// The group, if the pod names one, and the user of all its containers, if that is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    group: Option<u32>,
    user: Option<u32>,
}

impl Share {
    pub(super) fn of(pod: &Pod) -> Self {
        let security = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let group = security.and_then(|security| security.fs_group);
        let number = |number: i64| u32::try_from(number).ok();
        Self { group: group.and_then(number), user: pod.spec.as_ref().and_then(only_user).and_then(number) }
    }

    /// The mode of a file that is not written.
    pub(super) fn mode(self, mode: u32) -> u32 {
        if self.group.is_some() { mode | READ } else { mode }
    }

    /// The mode of a token: where it is known who reads it, nobody else does.
    pub(super) fn token_mode(self, mode: u32) -> u32 {
        if self == Self::default() { mode } else { PRIVATE }
    }

    /// Gives a token to the user that reads it.
    pub(super) fn give_token(self, path: &Path) -> io::Result<()> {
        if self.user.is_some() { give_to(path, self.user, None) } else { Ok(()) }
    }

    /// Gives a folder to write in to the group.
    pub(super) fn give_folder(self, folder: &Path) -> io::Result<()> {
        self.give(folder, FOLDER)
    }

    /// Gives everything in a folder to the group, to read.
    pub(super) fn give_files(self, folder: &Path) -> io::Result<()> {
        if self.group.is_none() {
            return Ok(());
        }
        self.give(folder, READ_FOLDER)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.give_files(&entry.path())?;
            } else if kind.is_file() {
                self.give(&entry.path(), READ)?;
            }
        }
        Ok(())
    }

    fn give(self, path: &Path, more: u32) -> io::Result<()> {
        let Some(group) = self.group else { return Ok(()) };
        give_to(path, None, Some(group))?;
        fs::set_permissions(path, Permissions::from_mode(fs::metadata(path)?.mode() & 0o7777 | more))
    }
}

/// Changes the owner, where that is possible.
fn give_to(path: &Path, user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    match chown(path, user, group) {
        // An ordinary user has no others and no other groups, but is the owner whatever the number of the container's user.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EINVAL)) => Ok(()),
        given => given,
    }
}

/// The user that all containers of a pod run as, if the pod says so of all of them.
fn only_user(spec: &PodSpec) -> Option<i64> {
    let usual = spec.security_context.as_ref().and_then(|security| security.run_as_user);
    let lasting = spec.init_containers.iter().flatten().chain(&spec.containers);
    let passing = spec.ephemeral_containers.iter().flatten();
    let securities = lasting
        .map(|container| container.security_context.as_ref())
        .chain(passing.map(|container| container.security_context.as_ref()));
    let mut users = securities.map(|security| security.and_then(|security| security.run_as_user).or(usual));
    let first = users.next()??;
    users.all(|user| user == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn tokens_are_for_the_one_who_is_known_to_read_them() {
        let share = |pod: &Value, containers: &[Value]| {
            let containers: Vec<_> =
                containers.iter().map(|security| json!({"name": "c", "securityContext": security})).collect();
            let spec = json!({"securityContext": pod, "containers": containers});
            Share::of(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap())
        };
        let (none, one, other) = (json!({}), json!({"runAsUser": 7}), json!({"runAsUser": 8}));
        let mode = |share: Share| share.mode(share.token_mode(0o644));
        for (pod, containers, user, expected) in [
            (&none, vec![none.clone()], None, 0o644),
            (&one, vec![none.clone(), one.clone()], Some(7), 0o600),
            (&one, vec![other.clone(), other.clone()], Some(8), 0o600),
            (&one, vec![none.clone(), other.clone()], None, 0o644),
            (&none, vec![one.clone(), none.clone()], None, 0o644),
            (&json!({"fsGroup": 9}), vec![none.clone()], None, 0o640),
            (&json!({"fsGroup": 9, "runAsUser": 7}), vec![none.clone()], Some(7), 0o640),
        ] {
            let share = share(pod, &containers);
            assert_eq!((share.user, mode(share)), (user, expected), "{pod} {containers:?}");
        }
    }
}
