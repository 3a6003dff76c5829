//! The devices of the machine, which a container uses and does not own.

use std::os::unix::fs::MetadataExt as _;

use skep_node::container::ContainerSpec;

use crate::support::{further, output, printed, script, start};

crate::trials![
    a_container_cannot_change_the_devices,
    further_processes_cannot_either,
    devices_keep_their_owner_whoever_uses_them,
    devices_can_be_used_by_everybody,
];

/// All that is in a container's `/dev`, and what of it the machine has.
const SHARED: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const OWN: [&str; 4] = ["ptmx", "pts", "pts/ptmx", "shm"];

/// Harmless, should they come to pass.
const ATTEMPTS: &str =
    "chmod 0667 $it && echo mode of $it; chown 0:7 $it && echo owner of $it; touch $it && echo time of $it";

/// Owner, group and mode of each on the machine.
fn outside() -> Vec<(String, u32, u32, u32)> {
    let paths = SHARED.iter().chain(&OWN).map(|name| format!("/dev/{name}"));
    let found = paths.filter_map(|path| {
        let metadata = std::fs::metadata(&path).ok()?;
        Some((path, metadata.uid(), metadata.gid(), metadata.mode()))
    });
    found.collect()
}

fn attempt(paths: &str) -> String {
    format!("for it in {paths}; do {ATTEMPTS}; done 2>/dev/null; echo done")
}

async fn a_container_cannot_change_the_devices() {
    let before = outside();
    let shared: Vec<_> = SHARED.iter().map(|name| format!("/dev/{name}")).collect();
    let paths = format!("{} /dev/stdin /proc/self/fd/0", shared.join(" "));
    assert_eq!(printed(&script(&attempt(&paths))).await, "done\n");
    let own: Vec<_> = OWN.iter().map(|name| format!("/dev/{name}")).collect();
    printed(&script(&attempt(&own.join(" ")))).await;
    assert_eq!(outside(), before);
}

async fn further_processes_cannot_either() {
    let before = outside();
    let container = start(&script("sleep 1000")).await.unwrap();
    let mut process = container.exec(&further(&attempt("/dev/stdin /dev/null"))).await.unwrap();
    assert_eq!(output(&mut process).await.0, "done\n");
    assert_eq!(outside(), before);
}

async fn devices_keep_their_owner_whoever_uses_them() {
    let before = outside();
    let spec = ContainerSpec { user: Some(1234), group: Some(5678), ..script("stat -L -c '%F' /dev/stdin") };
    assert_eq!(printed(&spec).await, "character special file\n");
    let terminal = ContainerSpec { tty: true, user: Some(1234), group: Some(5678), ..script("true") };
    start(&terminal).await.unwrap().wait().await;
    assert_eq!(outside(), before);
}

async fn devices_can_be_used_by_everybody() {
    let use_them =
        "echo nothing > /dev/null; cat /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c
         echo much 2>/dev/null > /dev/full || echo full; cat; : 5<>/dev/null && echo opened";
    for user in [None, Some(1234)] {
        let spec = ContainerSpec { user, group: user, ..script(use_them) };
        let text = printed(&spec).await;
        assert!(text.starts_with("3\n3\nfull\nopened\n"), "{text}");
    }
}
