//! `cargo run --release -p skep-bench -- kube`: Skep beside what it stands in for, in one run on one machine.

mod kube;
mod table;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};

/// Measures Skep beside what it stands in for
#[derive(Debug, Parser)]
#[command(name = "skep-bench", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// The embedded API server beside kube-apiserver with etcd; both sync every write to the disk
    ///
    /// KUBEBUILDER_ASSETS names the folder of the real server's binaries (cargo xtask control-plane). The exit code
    /// says whether all targets are met.
    Kube(KubeArgs),
}

#[derive(Debug, Args)]
struct KubeArgs {
    /// How often to measure each server; the table shows medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many custom resources to create, list and hold in memory
    #[arg(long, default_value_t = 5000)]
    objects: usize,
    /// The skep to measure; without it, one is built
    #[arg(long, value_name = "FILE")]
    skep: Option<PathBuf>,
    /// Measure skep alone
    #[arg(long)]
    alone: bool,
    /// Also write the figures of every round to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Bench::Kube(arguments) = Cli::parse().bench;
    match run(arguments).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all targets are met.
async fn run(arguments: KubeArgs) -> anyhow::Result<bool> {
    let skep = match arguments.skep {
        Some(file) => file,
        None => build()?,
    };
    let figures = kube::run(&skep, arguments.rounds, arguments.objects, arguments.alone).await?;
    if let Some(file) = arguments.json {
        std::fs::write(&file, format!("{:#}\n", table::json(&figures)))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    print!("{}", table::text(&figures));
    Ok(table::all_met(&figures))
}

/// Builds the program as it is shipped. It is beside this one.
fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").context("run this with cargo, or name a program with --skep")?;
    let status = Command::new(cargo).args(["build", "--release", "--package", "skep"]).status()?;
    anyhow::ensure!(status.success(), "skep does not build");
    let here = std::env::current_exe()?;
    let profiles = here.parent().and_then(std::path::Path::parent).context("this program is in no target folder")?;
    Ok(profiles.join("release/skep"))
}
