//! As whom the proxy and its backend run, and what they may not do.

use k8s_openapi::api::core::v1::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};

/// User and group, where the platform does not choose them.
const USER: i64 = 1000;

pub(crate) fn pod(openshift: bool) -> PodSecurityContext {
    let user = user(openshift);
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: user,
        run_as_group: user,
        fs_group: user,
        seccomp_profile: Some(seccomp()),
        ..PodSecurityContext::default()
    }
}

pub(crate) fn container(openshift: bool) -> SecurityContext {
    let user = user(openshift);
    SecurityContext {
        privileged: Some(false),
        run_as_non_root: Some(true),
        run_as_user: user,
        run_as_group: user,
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        seccomp_profile: Some(seccomp()),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}

fn user(openshift: bool) -> Option<i64> {
    (!openshift).then_some(USER)
}

fn seccomp() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }
}
