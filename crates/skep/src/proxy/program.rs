//! Whether the kernel can start what a command names: its file, and what that needs to be started.
//!
//! It is looked at, and not tried. What looks startable may still fail.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::tied::ITSELF;

/// So much of a file tells the kernel what it is.
const HEAD: usize = 256;
const SCRIPT: &[u8] = b"#!";
const BINARY: &[u8] = b"\x7fELF";
/// Where the head of a binary says which machine it is for: the size and order of its words, and the processor.
const MACHINE: [Range<usize>; 2] = [4..6, 18..20];
/// A binary with words of 64 bits, as all machines have that this program is made for.
const WIDE: u8 = 2;
/// The entry of a binary that names its loader, and how long such a name may be.
const LOADER: u32 = 3;
const LONGEST_NAME: usize = 4096;

/// Whether there is a program of this name that can be started.
pub(super) fn is_startable(program: &OsStr) -> bool {
    let is_one = |path: &Path| is_executable(path) && has_what_it_needs(path);
    if program.as_encoded_bytes().contains(&b'/') {
        return is_one(Path::new(program));
    }
    let places = env::var_os("PATH").unwrap_or_default();
    !program.is_empty() && env::split_paths(&places).any(|folder| is_one(&folder.join(program)))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Whether a script has its interpreter, and a binary its machine and its loader.
fn has_what_it_needs(path: &Path) -> bool {
    let mut head = [0; HEAD];
    // Whoever may start a file need not be allowed to read it.
    let Ok(file) = File::open(path) else { return true };
    let Ok(length) = file.read_at(&mut head, 0) else { return true };
    let head = &head[..length];
    if let Some(rest) = head.strip_prefix(SCRIPT) {
        return is_executable(Path::new(OsStr::from_bytes(interpreter(rest))));
    }
    !head.starts_with(BINARY)
        || is_of_this_machine(head) && loader(&file, head).is_none_or(|loader| is_executable(&loader))
}

/// The interpreter that the first line of a script names. As the kernel reads it, a return at its end belongs to the name.
fn interpreter(rest: &[u8]) -> &[u8] {
    let line = rest.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
    line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty()).unwrap_or_default()
}

/// Whether a binary is for the same machine as this program. What another one runs here is not known for sure.
fn is_of_this_machine(head: &[u8]) -> bool {
    let mut own = [0; HEAD];
    let is_known = File::open(ITSELF).and_then(|file| file.read_exact_at(&mut own, 0)).is_ok();
    !is_known || MACHINE.into_iter().all(|part| head.get(part.clone()) == own.get(part))
}

/// The loader that a binary of this machine names, if it names one.
fn loader(file: &File, head: &[u8]) -> Option<PathBuf> {
    if head.get(4) != Some(&WIDE) {
        return None;
    }
    let start = u64::from_ne_bytes(field(head, 32)?);
    let size = u64::from(u16::from_ne_bytes(field(head, 54)?));
    let count = u64::from(u16::from_ne_bytes(field(head, 56)?));
    (0..count).find_map(|index| {
        let mut entry = [0; 56];
        file.read_exact_at(&mut entry, start.checked_add(index * size)?).ok()?;
        let is_loader = u32::from_ne_bytes(field(&entry, 0)?) == LOADER;
        let length = usize::try_from(u64::from_ne_bytes(field(&entry, 32)?)).ok()?;
        if !is_loader || length > LONGEST_NAME {
            return None;
        }
        let mut name = vec![0; length];
        file.read_exact_at(&mut name, u64::from_ne_bytes(field(&entry, 8)?)).ok()?;
        let name = name.split(|byte| *byte == 0).next()?;
        Some(PathBuf::from(OsStr::from_bytes(name)))
    })
}

/// So many bytes of a head, from a place on.
fn field<const BYTES: usize>(head: &[u8], at: usize) -> Option<[u8; BYTES]> {
    head.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn is_startable_with(content: impl AsRef<[u8]>) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        is_startable(path.as_os_str())
    }

    #[test]
    fn a_script_needs_its_interpreter() {
        for (text, expected) in [
            ("#!/bin/sh\n", true),
            ("#! \t/bin/sh -e\nexit", true),
            ("#!/bin/sh", true),
            ("#!/no/such/interpreter\n", false),
            ("#!/bin/sh\r\n", false),
            ("#!/\n", false),
            ("exit", true),
        ] {
            assert_eq!(is_startable_with(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_binary_needs_its_machine() {
        let mut head = [0; HEAD];
        File::open(ITSELF).unwrap().read_exact_at(&mut head, 0).unwrap();
        // It names no entries.
        head[56..58].fill(0);
        assert!(is_startable_with(head));
        head[18..20].fill(0xff);
        assert!(!is_startable_with(head));
        assert!(!is_startable_with(BINARY), "it ends before it says anything");
        assert!(is_startable(OsStr::new(ITSELF)));
    }
}
