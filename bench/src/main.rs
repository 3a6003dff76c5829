//! `cargo run --release -p skep-bench -- kube`: Skep beside what it stands in for, in one run on one machine; `-- proxy`: its
//! proxy beside none and beside one that does nothing; `-- middleware`: what each layer of its chain costs; `-- up`: how
//! soon it is of use; `-- operator`: what many servers at once cost.

mod kube;
mod load;
mod mcp;
mod measure;
mod middleware;
mod operator;
mod proxy;
mod table;
mod up;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};

use table::Table;

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
    /// `skep up` with the demo server, from its start to the first answer of a tool
    ///
    /// The exit code says whether all targets are met.
    Up(UpArgs),
    /// The proxy with real MCP sessions, beside a bare hyper reverse proxy and beside no proxy
    ///
    /// With the chain that the operator writes for a server that asks for nothing, and with none. Server, proxy and clients
    /// share the machine, each in a process of its own. The exit code says whether all targets are met.
    Proxy(ProxyArgs),
    /// Each layer of the proxy's chain with real MCP sessions, beside a bare hyper reverse proxy
    ///
    /// Whoever is asked by a layer (issuer, callbacks, collector, Redis) is on the same machine; without redis-server in
    /// PATH, the layer that needs it is left out. Single decisions are measured in the process, without sockets. The exit
    /// code says whether all targets are met.
    Middleware(MiddlewareArgs),
    /// One of the processes of `proxy` and `middleware`
    #[command(name = mcp::part::COMMAND, hide = true)]
    Part {
        #[arg(value_parser = mcp::Part::read)]
        part: mcp::Part,
    },
    /// `skep operator` with many MCPServers at once, beside a client that sends the same writes
    ///
    /// On kube-apiserver with etcd, which syncs every write to the disk; no other controller runs, so there are no pods.
    /// KUBEBUILDER_ASSETS names the folder of the binaries (cargo xtask control-plane). The exit code says whether all
    /// targets are met.
    Operator(OperatorArgs),
}

#[derive(Debug, Args)]
struct ProxyArgs {
    /// How often to measure everything; the table shows medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each load lasts, in seconds
    #[arg(long, default_value = "2", value_parser = seconds)]
    seconds: Duration,
    /// How many sessions are idle at the same time
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// How many sessions begin and end, to see what is left of them
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(10..))]
    cycles: u32,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct MiddlewareArgs {
    /// How often to measure everything; the tables show medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each load lasts, in seconds
    #[arg(long, default_value = "1.5", value_parser = seconds)]
    seconds: Duration,
    /// How often each single decision is taken
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(10..))]
    decisions: u32,
    /// Measure no other lines than those whose names contain this, beside what they are compared with and the full chain
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// A time that is above zero, in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "a number of seconds above zero is needed, such as 1.5".to_owned())
}

#[derive(Debug, Args)]
struct OperatorArgs {
    /// How many MCPServers to create at once, each number on a fresh API server
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_values_t = [100, 1000, 3000],
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    servers: Vec<usize>,
    /// For how many seconds to watch the operator at rest
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    rest: u64,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct UpArgs {
    /// How often to start it on fresh data; the table shows medians
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// The skep to measure; without it, one is built
    #[arg(long, value_name = "FILE")]
    skep: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct OutputArgs {
    /// Also write the figures of every round to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct KubeArgs {
    /// How often to measure each server; the table shows medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many custom resources to create, list and hold in memory
    #[arg(long, default_value_t = 5000)]
    objects: usize,
    /// Measure skep alone
    #[arg(long)]
    alone: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse().bench).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all targets are met.
async fn run(bench: Bench) -> anyhow::Result<bool> {
    match bench {
        Bench::Kube(KubeArgs { rounds, objects, alone, common }) => {
            let figures = kube::run(&common.program()?, rounds, objects, alone).await?;
            common.output.tell(&[Table::of_rounds(&kube::measures::ALL, figures)])
        }
        Bench::Up(UpArgs { rounds, common }) => {
            let figures = up::run(&common.program()?, rounds)?;
            common.output.tell(&[Table::of_rounds(&up::ALL, figures)])
        }
        Bench::Operator(OperatorArgs { servers, rest, common }) => {
            let rest = Duration::from_secs(rest);
            common.output.tell(&operator::run(&common.program()?, &servers, rest).await?)
        }
        Bench::Proxy(ProxyArgs { rounds, seconds, sessions, cycles, output }) => {
            let (rounds, sessions, cycles) = (rounds as usize, sessions as usize, cycles as usize);
            let figures = proxy::run(&proxy::Settings { rounds, load: seconds, sessions, cycles }).await?;
            output.tell(&[Table::of_rounds(&proxy::measures(), figures)])
        }
        Bench::Middleware(MiddlewareArgs { rounds, seconds, decisions, only, output }) => {
            let (rounds, decisions) = (rounds as usize, decisions as usize);
            output.tell(&middleware::run(&middleware::Settings { rounds, load: seconds, decisions, only }).await?)
        }
        Bench::Part { part } => part.run().await.map(|()| true),
    }
}

impl CommonArgs {
    fn program(&self) -> anyhow::Result<PathBuf> {
        self.skep.clone().map_or_else(build, Ok)
    }
}

impl OutputArgs {
    /// Tells the figures, and whether all targets are met.
    fn tell(&self, tables: &[Table]) -> anyhow::Result<bool> {
        if let Some(file) = &self.json {
            std::fs::write(file, format!("{:#}\n", table::json(tables)))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let texts: Vec<String> = tables.iter().map(table::text).collect();
        print!("{}", texts.join("\n"));
        Ok(tables.iter().all(table::all_met))
    }
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
