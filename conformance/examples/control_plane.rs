//! A control plane to play with: prints the path of its kubeconfig and runs until standard input ends.
//!
//! ```sh
//! export KUBEBUILDER_ASSETS="$(cargo xtask control-plane)"
//! cargo run -p skep-conformance --example control_plane
//! ```

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::Context as _;
use skep_conformance::control_plane::{BINARIES_VARIABLE, ControlPlane};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let binaries = std::env::var_os(BINARIES_VARIABLE)
        .with_context(|| format!("set {BINARIES_VARIABLE}=\"$(cargo xtask control-plane)\""))?;
    let control_plane = ControlPlane::start(&PathBuf::from(binaries)).await?;
    println!("{}", control_plane.admin_kubeconfig().display());
    eprintln!("running at {}; end standard input (Ctrl-D) to stop", control_plane.server());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
