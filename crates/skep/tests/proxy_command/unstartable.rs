//! Commands whose files are there, and which the kernel cannot start.

use std::fs::{self, File, Permissions};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::{ANY, Serving};

/// The head of a binary of this machine.
fn head() -> Vec<u8> {
    let mut head = vec![0; 64];
    File::open(cargo_bin!("skep")).unwrap().read_exact(&mut head).unwrap();
    head
}

fn for_another_machine() -> Vec<u8> {
    let mut binary = head();
    binary[18..20].fill(0xff);
    binary
}

fn without_its_loader() -> Vec<u8> {
    let loader = b"/no/such/loader\0";
    // One entry of 56 bytes behind the head, and the name behind that.
    let mut binary = head();
    binary[32..40].copy_from_slice(&64_u64.to_ne_bytes());
    binary[54..56].copy_from_slice(&56_u16.to_ne_bytes());
    binary[56..58].copy_from_slice(&1_u16.to_ne_bytes());
    let mut entry = [0; 56];
    entry[..4].copy_from_slice(&3_u32.to_ne_bytes());
    entry[8..16].copy_from_slice(&120_u64.to_ne_bytes());
    entry[32..40].copy_from_slice(&u64::try_from(loader.len()).unwrap().to_ne_bytes());
    binary.extend(entry);
    binary.extend(loader);
    binary
}

#[test]
fn a_command_that_the_kernel_cannot_start_is_not_tried_again_and_again() {
    let folder = TempDir::new().unwrap();
    for (name, content, told) in [
        ("script", b"#!/no/such/interpreter\n".to_vec(), "No such file or directory"),
        ("foreign", for_another_machine(), "Exec format error"),
        ("unloadable", without_its_loader(), "No such file or directory"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let path = path.to_str().unwrap();
        let mut proxy = Serving::start(&[&ANY[..], &["--", path]].concat());
        assert_eq!(proxy.end(), Some(1), "{name}");
        proxy.await_words(&format!("error: cannot start {path}: {told}"));
    }
}

// A server that ends with a code of the shell was started, and may stay the next time.
#[test]
fn a_command_that_ends_as_if_it_were_not_found_is_started_again() {
    let folder = TempDir::new().unwrap();
    let (mark, skep) = (folder.path().join("mark"), cargo_bin!("skep"));
    let script = r#"[ -e "$0" ] || { : > "$0"; exit 127; }; exec "$1" demo echo --transport stdio"#;
    let words = ["--", "sh", "-c", script, mark.to_str().unwrap(), skep.to_str().unwrap()];
    let proxy = Serving::start(&[&ANY[..], &words].concat());
    let said = proxy.await_words("connecting to the MCP server again");
    assert!(said.contains("exit status: 127"), "{said}");
    proxy.session();
}
