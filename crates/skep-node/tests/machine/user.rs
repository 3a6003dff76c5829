//! Who a container's program is, and what it may do.

use std::os::unix::fs::MetadataExt as _;

use skep_node::container::{ContainerSpec, StartError};

use crate::support::{bind, further, output, printed, script, start};

crate::trials![
    the_program_is_root_of_its_container,
    the_program_is_the_user_it_is_told_to_be,
    groups_are_set_where_root_runs_it,
    privileges_are_those_of_containers,
    a_user_that_cannot_be_is_refused,
];

/// Whether the tests run as root of the machine: an ordinary user has one user only.
fn has_all_users() -> bool {
    std::fs::read_to_string("/proc/self/setgroups").unwrap().trim() == "allow"
}

async fn the_program_is_root_of_its_container() {
    assert_eq!(printed(&script("id -u; id -g")).await, "0\n0\n");
}

async fn the_program_is_the_user_it_is_told_to_be() {
    let volume = tempfile::tempdir().unwrap();
    std::fs::set_permissions(volume.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let spec = ContainerSpec {
        user: Some(1234),
        group: Some(5678),
        mounts: vec![bind(volume.path(), "/data")],
        ..script(
            "id -u; id -g; touch /data/made; stat -c '%u %g' /data/made; echo again > /dev/stdout; sleep 1000 &\nwait",
        )
    };
    let mut container = start(&spec).await.unwrap();
    let mut stdout = container.take_stdout().unwrap();
    let mut text = vec![0; "1234\n5678\n1234 5678\nagain\n".len()];
    tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut text).await.unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "1234\n5678\n1234 5678\nagain\n");
    let mut process = container.exec(&further("id -u; id -g; kill -0 2 && echo may")).await.unwrap();
    assert_eq!(output(&mut process).await.0, "1234\n5678\nmay\n");
    let owner = std::fs::metadata(volume.path().join("made")).unwrap().uid();
    assert_eq!(owner, if has_all_users() { 1234 } else { rustix::process::geteuid().as_raw() });
}

async fn groups_are_set_where_root_runs_it() {
    let spec = ContainerSpec { user: Some(1234), group: Some(5678), groups: vec![77, 88], ..script("id -G") };
    let text = printed(&spec).await;
    if has_all_users() {
        assert_eq!(text, "5678 77 88\n");
    } else {
        assert!(text.starts_with("5678"), "{text}");
    }
}

async fn privileges_are_those_of_containers() {
    let look = "grep -E '^(NoNewPrivs|CapEff|CapBnd|CapAmb|CapInh):' /proc/self/status | tr -d '\\t\\n'";
    // CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, NET_BIND_SERVICE.
    let kept = "00000000000004eb";
    let none = "0000000000000000";
    let as_root = printed(&script(look)).await;
    assert_eq!(as_root, format!("CapInh:{none}CapEff:{kept}CapBnd:{kept}CapAmb:{none}NoNewPrivs:1"));
    let as_user = printed(&ContainerSpec { user: Some(1000), ..script(look) }).await;
    assert_eq!(as_user, format!("CapInh:{none}CapEff:{none}CapBnd:{kept}CapAmb:{none}NoNewPrivs:1"));
    assert_eq!(printed(&script("mount -t tmpfs none /tmp 2>/dev/null || echo refused")).await, "refused\n");
}

async fn a_user_that_cannot_be_is_refused() {
    // This number means "no user".
    let spec = ContainerSpec { user: Some(u32::MAX), ..script("true") };
    let error = start(&spec).await.unwrap_err();
    assert!(matches!(&error, StartError::User { identity, .. } if identity.contains("4294967295")), "{error}");
}
