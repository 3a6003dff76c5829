//! The Redis that tests run on.

use std::process::Command;

use anyhow::ensure;

const PACKAGE: &str = "redis-server";

/// Makes sure that there is one. Says what is in the way when there is not.
pub(crate) fn ensure() -> Result<(), String> {
    if is_installed() {
        return Ok(());
    }
    eprintln!("installing {PACKAGE}");
    install().map_err(|error| format!("no {PACKAGE}: {error:#}; install it with `apt-get install {PACKAGE}`"))
}

fn is_installed() -> bool {
    Command::new(PACKAGE).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A machine that is new may know of no packages yet.
fn install() -> anyhow::Result<()> {
    let install = ["install", "--yes", "--no-install-recommends", PACKAGE];
    apt_get(&install).or_else(|_| {
        apt_get(&["update"])?;
        apt_get(&install)
    })
}

fn apt_get(arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("apt-get")
        .args(arguments)
        // The package would start a server of its own.
        .env("RUNLEVEL", "1")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()?;
    let reason = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "apt-get: {}", reason.lines().last().unwrap_or_default());
    Ok(())
}
