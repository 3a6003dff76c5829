//! The images that are Skep itself, whatever somebody has called them.

use serde_json::json;

use super::here::{Here, echo};
use skep_conformance::ports::free_port;

#[test]
fn images_of_skep_itself_need_no_map() {
    let here = Here::new();
    let images = ["ghcr.io/acme/skep:0.1.0", "registry.example:5000/acme/bee-proxy:1"];
    let objects = images.iter().enumerate().flat_map(|(index, image)| {
        let port = free_port().unwrap();
        let [mut deployment, service] = echo(&format!("own-{index}"), port);
        let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
        container["image"] = json!(image);
        container["args"] =
            json!(["demo", "echo", "--transport", "streamable-http", "--host", "0.0.0.0", "--port", port.to_string()]);
        [deployment, service]
    });
    let manifest = here.manifest("own.json", &objects.collect::<Vec<_>>());
    here.up(&["--own-image", "*/acme/*-proxy", "-f", &manifest]);
    here.status_when("both tell their tools", |rows| {
        rows.len() == images.len() && rows.iter().all(|row| row["tools"].is_array())
    });
    // The next start is not told, and does not know the second.
    here.done(&["down"]);
    let said = here.run(&["up", "--detach", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("default/own-1 (") && !said.stderr.contains("default/own-0 ("), "{said:?}");
}
