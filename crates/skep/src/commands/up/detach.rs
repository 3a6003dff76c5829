//! `skep up --detach`: the same command again, in the background.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::Client;

use crate::commands::status;
use crate::connection::connect;
use crate::data_folder::DataFolder;
use crate::endpoint::{self, Endpoint, Observed};
use crate::hint::Hinted;
use crate::output;

/// How long a start may take.
const START_LIMIT: Duration = Duration::from_mins(2);
/// How long endpoints may take to become ready before they are told as they are.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// After this long a person wants to know what is waited for.
const SILENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn start(data: &DataFolder, manifests: &[PathBuf]) -> anyhow::Result<()> {
    // The log of somebody who is there already must not be taken away.
    if data.occupant()?.is_some() {
        return Err(data.occupied().into());
    }
    data.make()?;
    let mut child = spawn(data, manifests.iter().any(|place| place == Path::new("-")))?;
    serving(data, &mut child).await?;
    relay(data);
    let client = connect(data).await?;
    let endpoints = endpoint::ask_all(ready(&client).await?).await;
    eprintln!("in the background as process {}, with the log {}", child.id(), data.log().display());
    eprintln!("skep status shows what it serves, skep down stops it");
    if endpoints.is_empty() { Ok(()) } else { output::print(&status::table(&endpoints, false)) }
}

fn spawn(data: &DataFolder, reads_input: bool) -> anyhow::Result<Child> {
    let log = data.log();
    let before = log.with_extension("previous");
    let context = || format!("cannot write the log {}", log.display());
    if log.exists() {
        fs::rename(&log, before).with_context(context)?;
    }
    // What is said may be about anything that is served here.
    let output = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&log).with_context(context)?;
    let same = |argument: OsString| if argument == "--detach" { "--detached".into() } else { argument };
    let mut command = Command::new(std::env::current_exe().context("the program cannot find itself")?);
    command.args(std::env::args_os().skip(1).map(same));
    command.stdin(if reads_input { Stdio::inherit() } else { Stdio::null() });
    command.stdout(output.try_clone()?).stderr(output);
    command.spawn().context("cannot start a process in the background")
}

/// Tells what the process in the background has said so far.
fn relay(data: &DataFolder) {
    eprint!("{}", fs::read_to_string(data.log()).unwrap_or_default());
}

/// Waits until everything is applied.
async fn serving(data: &DataFolder, child: &mut Child) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        // A process that has failed had its reasons, and told them.
        if let Some(status) = child.try_wait()? {
            relay(data);
            std::process::exit(status.code().unwrap_or(1));
        }
        let is_there = data.occupant()? == i32::try_from(child.id()).ok();
        if is_there && data.serving().is_some() {
            return Ok(());
        }
        if begun.elapsed() > START_LIMIT {
            let problem = format!("skep up (process {}) has not started in {START_LIMIT:?}", child.id());
            let hint = format!("it goes on trying; see {}, or end it with skep down", data.log().display());
            return Err(Hinted::new(problem).hint(hint).into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until all endpoints are ready, or known to fail, or for as long as anybody would.
async fn ready(client: &Client) -> anyhow::Result<Vec<Endpoint>> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        let observed = Observed::now(client).await?;
        let offered = observed.services.iter().filter(|service| {
            let spec = service.spec.as_ref();
            spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
        });
        let is_complete = offered.into_iter().all(|service| !skep_node::service::local_ports(service).is_empty());
        let endpoints = endpoint::endpoints(&observed);
        let settled = |endpoint: &Endpoint| endpoint.ready || ["Failed", "Stopped"].contains(&endpoint.phase.as_str());
        if (is_complete && endpoints.iter().all(settled)) || begun.elapsed() > READY_LIMIT {
            return Ok(endpoints);
        }
        if begun.elapsed() > SILENCE && !told {
            let waiting: Vec<String> =
                endpoints.iter().filter(|endpoint| !settled(endpoint)).map(Endpoint::full_name).collect();
            let limit = READY_LIMIT.as_secs();
            eprintln!("waiting at most {limit} s for {}; it goes on without this command, too", waiting.join(", "));
            told = true;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
