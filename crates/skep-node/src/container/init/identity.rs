//! Becomes the user and the groups that a process runs as.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, fchown, fstat};
use rustix::process::{Gid, Uid};
use rustix::termios::isatty;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::container::StartError;
use crate::container::protocol::Identity;
use crate::sys;

/// How a process becomes its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It is that user already.
    Stay,
    /// By changing to it, as root may.
    Change,
    /// By a user namespace of its own in which its only user has that number. Nothing else is left to ordinary users:
    /// the kernel lets them have one user, whatever they call it.
    Rename,
}

/// Chooses the way, given whether the process is in namespaces of Skep's making.
pub(super) fn way(identity: &Identity, enclosed: bool) -> Way {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let wanted = (identity.user.unwrap_or(own.0), identity.group.unwrap_or(own.1));
    let mapped = maps("uid", wanted.0) && maps("gid", wanted.1);
    match (enclosed, own.0) {
        (true, _) if mapped && groups_can_be_set() => Way::Change,
        (true, _) if wanted == own => Way::Stay,
        (true, _) => Way::Rename,
        (false, _) if *identity == Identity::default() || (own.0 != 0 && wanted == own) => Way::Stay,
        (false, _) => Way::Change,
    }
}

/// Hands streams to the user that is to use them, so that it may open `/dev/stdout` again.
pub(super) fn give(streams: &[OwnedFd], identity: &Identity) {
    let (user, group) = (identity.user.map(Uid::from_raw), identity.group.map(Gid::from_raw));
    for stream in streams.iter().filter(|stream| is_of_the_container(stream)) {
        // Numbers that are not mapped cannot be given anything.
        let _ = fchown(stream, user, group);
    }
}

/// Whether a stream was made for the container: pipes and terminals are. Devices are the machine's.
fn is_of_the_container(stream: &OwnedFd) -> bool {
    let is_pipe = fstat(stream).is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Fifo);
    is_pipe || isatty(stream)
}

/// Makes the user namespace in which the process has its number.
pub(super) fn rename(identity: &Identity) -> Result<(), StartError> {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::new_user_namespace()
        .and_then(|()| fs::write("/proc/self/setgroups", "deny"))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{} {} 1", identity.group.unwrap_or(own.1), own.1)))
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{} {} 1", identity.user.unwrap_or(own.0), own.0)))
        .map_err(|error| refused(identity, &error))
}

/// Changes to the user and the groups.
pub(super) fn change(identity: &Identity) -> Result<(), StartError> {
    let groups: Vec<_> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    let group = Gid::from_raw(identity.group.unwrap_or(0));
    let user = Uid::from_raw(identity.user.unwrap_or(0));
    set_thread_groups(&groups)
        .and_then(|()| set_thread_res_gid(group, group, group))
        .and_then(|()| set_thread_res_uid(user, user, user))
        .map_err(|error| refused(identity, &error.into()))
}

fn refused(identity: &Identity, cause: &io::Error) -> StartError {
    let name = |number: Option<u32>| number.map_or("root".to_owned(), |number| number.to_string());
    let identity = format!("user {}, group {}", name(identity.user), name(identity.group));
    StartError::User { identity, cause: cause.to_string() }
}

/// Whether the user namespace of this process has a user or group of that number.
fn maps(kind: &str, number: u32) -> bool {
    let table = fs::read_to_string(format!("/proc/self/{kind}_map")).unwrap_or_default();
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) = (fields.next(), fields.next(), fields.next()) else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&u64::from(number))
    })
}

/// Whether this process, as root of its user namespace, may give further groups.
pub(crate) fn groups_can_be_set() -> bool {
    fs::read_to_string("/proc/self/setgroups").is_ok_and(|answer| answer.trim() == "allow")
}
