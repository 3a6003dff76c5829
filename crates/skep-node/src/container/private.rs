//! Places of the machine that are nobody's business in a container, even when the container runs as their owner.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Where people keep their files.
const HOMES: [&str; 2] = ["/home", "/root"];
/// Passwords and keys of the machine.
const SECRETS: [&str; 5] = ["/etc/gshadow", "/etc/gshadow-", "/etc/shadow", "/etc/shadow-", "/etc/ssl/private"];
/// Where the keys of the machine's own logins are, and how their names begin and end.
const LOGIN_KEYS: (&str, &str, &str) = ("/etc/ssh", "ssh_host_", "_key");

/// All of them, files and folders.
pub(crate) fn places() -> Vec<PathBuf> {
    let secrets = SECRETS.iter().map(PathBuf::from).filter(|path| path.exists());
    homes().into_iter().chain(secrets).chain(login_keys()).collect()
}

/// Whether a path is in somebody's home folder, and so not seen by containers.
pub(crate) fn is_in_a_home(path: &Path) -> bool {
    homes().iter().any(|home| path.starts_with(home))
}

/// The home folders: those of everybody, and this user's own wherever it is. The variable alone would not do, as
/// services start without it.
fn homes() -> Vec<PathBuf> {
    let own = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let known = HOMES.iter().map(PathBuf::from).chain(own).chain(listed_home());
    let found = known.filter_map(|home| home.canonicalize().ok());
    let mut homes: Vec<PathBuf> = found.filter(|home| home.parent().is_some() && home.is_dir()).collect();
    homes.sort();
    homes.dedup();
    homes
}

/// The home folder that the list of users names. Users of services share theirs with others, so it must be their own.
fn listed_home() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let home = users.lines().find_map(|line| {
        let cells: Vec<&str> = line.split(':').collect();
        (cells.get(2)?.parse() == Ok(user)).then(|| cells.get(5).map(PathBuf::from))?
    })?;
    fs::metadata(&home).is_ok_and(|found| found.uid() == user).then_some(home)
}

fn login_keys() -> Vec<PathBuf> {
    let (folder, start, end) = LOGIN_KEYS;
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let keys = names.filter(|name| name.to_str().is_some_and(|name| name.starts_with(start) && name.ends_with(end)));
    keys.map(|name| Path::new(folder).join(name)).collect()
}
