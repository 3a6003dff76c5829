//! What a container sees of the machine, and what it may write to.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use skep_node::container::{ContainerSpec, StartError};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::{bind, bind_read_only, printed, script, start};

crate::trials![
    mounts_are_seen_and_hidden_folders_are_not,
    the_home_folder_is_empty,
    secrets_of_the_machine_are_not_seen,
    the_kernel_of_the_machine_cannot_be_changed,
    a_change_of_a_mounted_folder_is_seen,
    a_read_only_mount_cannot_be_written_to,
    the_machine_cannot_be_written_to,
    a_read_only_root_leaves_only_the_mounts,
    missing_mount_points_are_made,
    a_missing_working_folder_is_made,
    covered_folders_keep_what_is_in_them,
    a_link_leads_to_a_place_inside,
    a_link_to_a_missing_file_is_followed,
    links_are_followed_while_files_are_renamed,
    volumes_lie_in_volumes,
    the_places_of_a_container_are_its_own,
];

fn folder_with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    folder
}

async fn mounts_are_seen_and_hidden_folders_are_not() {
    let volume = folder_with("greeting", "hello");
    let spec = ContainerSpec {
        mounts: vec![
            bind(volume.path(), "/data"),
            bind(&volume.path().join("greeting"), "/etc/hostname"),
            bind(volume.path(), "/usr/share/volume"),
        ],
        hidden: vec!["/usr/share".into(), "/nowhere".into()],
        ..script("cat /data/greeting /etc/hostname; ls /usr/share /usr/share/volume")
    };
    assert_eq!(printed(&spec).await, "hellohello/usr/share:\nvolume\n\n/usr/share/volume:\ngreeting\n");
}

async fn the_home_folder_is_empty() {
    let home = std::env::var("HOME").unwrap();
    let marker = tempfile::Builder::new().prefix("marker").tempfile_in(&home).unwrap();
    assert!(marker.path().exists());
    assert_eq!(printed(&script(&format!("ls -A {home} 2>/dev/null | wc -l"))).await.trim(), "0");
}

async fn secrets_of_the_machine_are_not_seen() {
    let text =
        printed(&script("ls -A /home /root | grep -v : | grep .; cat /etc/shadow /etc/gshadow /proc/keys | wc -c"))
            .await;
    assert_eq!(text, "0\n");
}

async fn the_kernel_of_the_machine_cannot_be_changed() {
    // Each takes the value that it has, should it take one.
    let text = printed(&script(
        "for file in kernel/core_pattern vm/swappiness net/ipv4/ip_forward; do
             value=$(cat /proc/sys/$file); echo $value > /proc/sys/$file && echo $file
         done 2>/dev/null
         for file in /proc/sysrq-trigger /proc/irq/default_smp_affinity; do test -w $file && echo $file; done
         echo done",
    ))
    .await;
    assert_eq!(text, "done\n");
}

async fn a_change_of_a_mounted_folder_is_seen() {
    let volume = folder_with("word", "first\n");
    let spec = ContainerSpec {
        mounts: vec![bind_read_only(volume.path(), "/data")],
        stdin: true,
        ..script("cat /data/word; read line; cat /data/word /data/new")
    };
    let mut container = start(&spec).await.unwrap();
    let mut lines = BufReader::new(container.take_stdout().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "first");
    // As volumes are updated: the old file is replaced, not written to.
    fs::write(volume.path().join("next"), "second\n").unwrap();
    fs::rename(volume.path().join("next"), volume.path().join("word")).unwrap();
    fs::write(volume.path().join("new"), "third\n").unwrap();
    container.take_stdin().unwrap().write_all(b"go\n").await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "second");
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "third");
}

async fn a_read_only_mount_cannot_be_written_to() {
    let volume = folder_with("word", "kept");
    let spec = ContainerSpec {
        mounts: vec![bind_read_only(volume.path(), "/fixed"), bind(volume.path(), "/open")],
        ..script("echo changed > /fixed/word || echo refused; touch /open/made; echo $?")
    };
    let text = printed(&spec).await;
    assert!(text.starts_with("refused\n0\n"), "{text}");
    assert!(text.contains("Read-only file system"), "{text}");
    assert_eq!(fs::read_to_string(volume.path().join("word")).unwrap(), "kept");
    assert!(volume.path().join("made").exists());
}

async fn the_machine_cannot_be_written_to() {
    let text = printed(&script(
        "for place in /etc /usr /usr/bin /var /sys /sys/kernel; do touch $place/skep-test 2>/dev/null && echo $place; done
         for place in / /tmp /var/tmp /run /dev/shm; do touch $place/skep-test || echo not $place; done",
    ))
    .await;
    assert_eq!(text, "");
    assert!(!Path::new("/tmp/skep-test").exists());
}

async fn a_read_only_root_leaves_only_the_mounts() {
    let volume = tempfile::tempdir().unwrap();
    let home = std::env::var("HOME").unwrap();
    let spec = ContainerSpec {
        mounts: vec![bind(volume.path(), "/data"), bind(volume.path(), "/etc/missing")],
        read_only_root: true,
        ..script(&format!(
            "for place in / /tmp /run /etc {home}; do touch $place/skep-test 2>/dev/null && echo $place; done
             touch /data/made /dev/shm/made && echo > /dev/null && echo done"
        ))
    };
    assert_eq!(printed(&spec).await, "done\n");
    assert!(volume.path().join("made").exists());
}

async fn missing_mount_points_are_made() {
    let volume = folder_with("word", "here\n");
    let file = volume.path().join("word");
    let spec = ContainerSpec {
        mounts: vec![
            bind(volume.path(), "/etc/skep-test/deep"),
            bind(&file, "/etc/skep-test-file"),
            bind(&file, "/usr/share/skep-test/file"),
            bind(volume.path(), "/a/b/c"),
            bind(&file, "/var/skep-test"),
            bind(&file, "/tmp/x/y"),
        ],
        ..script(
            "cat /etc/skep-test/deep/word /etc/skep-test-file /usr/share/skep-test/file /a/b/c/word /var/skep-test /tmp/x/y
             touch /etc/skep-test/other 2>/dev/null || echo refused; ls -A / | grep skep",
        )
    };
    let (text, exit) = crate::support::output(&mut start(&spec).await.unwrap()).await;
    assert_eq!(text, "here\n".repeat(6) + "refused\n");
    assert_eq!(exit.code, 1, "grep finds nothing that is left over");
    assert!(!Path::new("/etc/skep-test").exists());
}

async fn a_missing_working_folder_is_made() {
    let volume = folder_with("greeting", "hello");
    for folder in ["/no/such/folder", "/usr/share/no/such", "/tmp/no/such", "/data/no/such"] {
        for read_only_root in [false, true] {
            let spec = ContainerSpec {
                mounts: vec![bind(volume.path(), "/data")],
                working_dir: Some(folder.into()),
                read_only_root,
                ..script("pwd; cat /data/greeting; ls /usr/share | grep -c .")
            };
            let text = printed(&spec).await;
            assert!(text.starts_with(&format!("{folder}\nhello")) && !text.ends_with("hello0\n"), "{text}");
        }
    }
    assert!(!Path::new("/no").exists() && !Path::new("/usr/share/no").exists(), "the machine has got it, too");
    assert!(volume.path().join("no/such").is_dir(), "what is in a volume stays there");
}

async fn covered_folders_keep_what_is_in_them() {
    let volume = tempfile::tempdir().unwrap();
    let look = "ls -A /etc | grep -v skep-test; cat /etc/passwd; ls -ld /etc | cut -c1-10; ls -A /proc/self >/dev/null";
    let before = printed(&script(look)).await;
    let covered = ContainerSpec { mounts: vec![bind(volume.path(), "/etc/skep-test")], ..script(look) };
    assert_eq!(printed(&covered).await, before);
    // What is to be hidden is not there, so the point is made when overlays could hide something.
    let late = ContainerSpec {
        mounts: vec![bind(volume.path(), "/etc/skep-test/late")],
        hidden: vec!["/etc/skep-test".into()],
        ..script(look)
    };
    assert_eq!(printed(&late).await, before);
    assert!(before.contains("passwd") && before.contains("drwxr-xr-x"), "{before}");
}

async fn a_link_leads_to_a_place_inside() {
    let (outside, volume) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = folder_with("word", "mounted\n");
    symlink(outside.path(), volume.path().join("absolute")).unwrap();
    symlink("../../../../../..", volume.path().join("upwards")).unwrap();
    let spec = ContainerSpec {
        mounts: vec![
            bind(volume.path(), "/data"),
            bind(secret.path(), "/data/absolute/made"),
            bind(secret.path(), "/data/upwards/made"),
        ],
        ..script(&format!("cat {}/made/word /made/word", outside.path().display()))
    };
    assert_eq!(printed(&spec).await, "mounted\nmounted\n");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "nothing is made outside");
    assert!(!Path::new("/made").exists());
    for target in ["relative", "/../up", "/data/../../up", "/"] {
        let spec = ContainerSpec { mounts: vec![bind(secret.path(), target)], ..script("true") };
        let error = start(&spec).await.unwrap_err();
        assert!(matches!(&error, StartError::Mount { target: told, .. } if told == Path::new(target)), "{error}");
    }
}

async fn a_link_to_a_missing_file_is_followed() {
    let volume = folder_with("word", "found\n");
    symlink("../run/made/by/link", volume.path().join("link")).unwrap();
    let spec = ContainerSpec {
        mounts: vec![bind(volume.path(), "/data"), bind(&volume.path().join("word"), "/data/link")],
        ..script("cat /data/link /run/made/by/link")
    };
    assert_eq!(printed(&spec).await, "found\nfound\n");
    symlink("circle", volume.path().join("circle")).unwrap();
    let circle = ContainerSpec {
        mounts: vec![bind(volume.path(), "/data"), bind(&volume.path().join("word"), "/data/circle")],
        ..script("true")
    };
    assert!(matches!(start(&circle).await, Err(StartError::Mount { .. })));
}

/// The kernel gives up looking at a `..` when anything was renamed meanwhile, anywhere on the machine.
async fn links_are_followed_while_files_are_renamed() {
    let volume = folder_with("word", "found\n");
    symlink("../run/../run/../run/made", volume.path().join("link")).unwrap();
    let (busy, stop) = (folder_with("a", ""), Arc::new(AtomicBool::new(false)));
    let (folder, stopped) = (busy.path().to_owned(), stop.clone());
    let renaming = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            fs::rename(folder.join("a"), folder.join("b")).unwrap();
            fs::rename(folder.join("b"), folder.join("a")).unwrap();
        }
    });
    for _ in 0..20 {
        let spec = ContainerSpec {
            mounts: vec![bind(volume.path(), "/data"), bind(&volume.path().join("word"), "/data/link")],
            ..script("cat /run/made")
        };
        assert_eq!(printed(&spec).await, "found\n");
    }
    stop.store(true, Ordering::Relaxed);
    renaming.join().unwrap();
}

async fn volumes_lie_in_volumes() {
    let (outer, inner) = (folder_with("word", "outer\n"), folder_with("word", "inner\n"));
    let spec = ContainerSpec {
        mounts: vec![bind(outer.path(), "/data"), bind(inner.path(), "/data/nested")],
        ..script("cat /data/word /data/nested/word")
    };
    assert_eq!(printed(&spec).await, "outer\ninner\n");
    assert!(outer.path().join("nested").is_dir(), "the mount point is made in a volume that can be written to");
    let fixed = ContainerSpec {
        mounts: vec![bind_read_only(outer.path(), "/data"), bind(inner.path(), "/data/other")],
        ..script("true")
    };
    let error = start(&fixed).await.unwrap_err();
    assert!(error.to_string().contains("Read-only file system"), "{error}");
}

async fn the_places_of_a_container_are_its_own() {
    let text = printed(&script(
        "ls -A /tmp /run /dev/shm | grep -v : | grep .
         ls -d /proc/[0-9]* | wc -l
         head -c 3 /dev/zero | wc -c; test -c /dev/null && test -c /dev/ptmx && test -e /dev/stdin && echo devices
         echo through > /dev/stdout
         umask; ls /sys | grep -c kernel",
    ))
    .await;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1..], ["3", "devices", "through", "0022", "1"], "{text}");
    let processes: u32 = lines[0].trim().parse().unwrap();
    assert!(processes <= 5, "it sees {processes} processes, not only its own");
}
