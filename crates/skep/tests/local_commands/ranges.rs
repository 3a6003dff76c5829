//! The addresses of services are where they are wanted, and stay there.

use serde_json::Value;
use skep_conformance::ports::free_port;

use super::here::{Here, echo};

fn address(here: &Here, service: &str) -> String {
    let service: Value = serde_json::from_str(&here.done(&["get", "service", service, "-o", "json"])).unwrap();
    service["spec"]["clusterIP"].as_str().unwrap().to_owned()
}

/// The error and the hints of a start that is refused.
fn refused(here: &Here, arguments: &[&str]) -> String {
    let said = here.run(&[&["up", "--detach", "--listen", "127.0.0.1:0"], arguments].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(here.run(&["status"]).code, Some(3), "nothing runs");
    said.stderr
}

#[test]
fn services_have_addresses_of_their_range_and_keep_them() {
    let here = Here::new();
    let manifest = here.manifest("echo.json", &echo("echo", free_port().unwrap()));
    here.up(&["--service-range", "10.97.0.0/20", "-f", &manifest]);
    let tells = |rows: &[Value]| rows.len() == 1 && rows[0]["tools"].is_array();
    here.status_when("it is served", tells);
    let before = address(&here, "echo");
    assert!(before.starts_with("10.97."), "{before}");
    assert_eq!(address(&here, "kubernetes"), "10.97.0.1");
    here.done(&["down"]);

    let told = refused(&here, &["--service-range", "10.98.0.0/16"]);
    let error = "--service-range 10.98.0.0/16 cannot be used: services have addresses of 10.97.0.0/20 (default/echo)";
    assert!(told.contains(error) && told.contains("hint: go on with --service-range 10.97.0.0/20"), "{told}");

    here.up(&[]);
    here.status_when("it is served again", tells);
    assert_eq!(address(&here, "echo"), before);
    here.done(&["delete", "service", "echo"]);
    here.done(&["down"]);

    here.up(&["--service-range", "10.98.0.0/16", "-f", &manifest]);
    here.status_when("it is served elsewhere", tells);
    let after = address(&here, "echo");
    assert!(after.starts_with("10.98."), "{after}");
    assert_eq!(address(&here, "kubernetes"), "10.98.0.1");
}

#[test]
fn ranges_that_cannot_be_are_refused() {
    let here = Here::new();
    let told = refused(&here, &["--service-range", "10.244.16.0/20"]);
    assert!(told.contains("the pod range 10.244.0.0/16 and the service range 10.244.16.0/20 overlap"), "{told}");
    assert!(told.contains("hint: choose another range with --pod-range or with --service-range"), "{told}");
    let told = refused(&here, &["--service-range", "10.97.0.0/30"]);
    assert!(told.contains("--service-range 10.97.0.0/30 has too few addresses, or too many"), "{told}");
}

#[test]
fn addresses_that_mean_something_else_are_refused() {
    let here = Here::new();
    for (flag, range, what) in [
        ("--service-range", "127.96.0.0/16", "loopback addresses (127.0.0.0/8)"),
        ("--pod-range", "127.0.0.0/16", "loopback addresses (127.0.0.0/8)"),
        ("--pod-range", "224.0.0.0/16", "multicast addresses (224.0.0.0/4)"),
        ("--service-range", "169.254.0.0/20", "link-local addresses (169.254.0.0/16)"),
    ] {
        for command in ["up", "node"] {
            let said = here.run(&[command, flag, range]);
            assert_eq!(said.code, Some(2), "{said:?}");
            let told = format!("error: invalid value '{range}' for '{flag} <RANGE>': {what} are in it");
            assert!(said.stderr.starts_with(&told), "{told}: {said:?}");
        }
    }
    assert!(!here.data().exists(), "nothing was started");
}
