//! `skep up --detach`: the same command again, in the background.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _};
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
use crate::hint::{Hinted, NOT_YET};
use crate::output;

/// Tells the process in the background that it is that one, and where its log is.
pub(super) const LOG_VARIABLE: &str = "SKEP_BACKGROUND_LOG";
/// How long a start may take.
const START_LIMIT: Duration = Duration::from_mins(2);
/// How long endpoints may take to become ready before they are told as they are.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// A failure that has lasted for so long counts as one.
const FAILURE_STAYS: Duration = Duration::from_secs(5);
/// After this long a person wants to know what is waited for.
const SILENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn start(data: &DataFolder, manifests: &[PathBuf]) -> anyhow::Result<()> {
    if data.occupant()?.is_some() {
        return Err(data.occupied().into());
    }
    data.make()?;
    let mut background = Background::spawn(data, manifests.iter().any(|place| place == Path::new("-")))?;
    background.serving(data).await?;
    background.relay();
    let client = connect(data).await?;
    let endpoints = ready(&client).await?;
    eprintln!("in the background as process {}, with the log {}", background.child.id(), data.log().display());
    eprintln!("{} shows what it serves, {} stops it", data.command("status"), data.command("down"));
    if !endpoints.is_empty() {
        output::print(&status::table(&endpoints, false))?;
    }
    for line in endpoint::client_lines(&endpoints) {
        eprintln!("{line}");
    }
    verdict(&endpoints, data).map_err(Into::into)
}

/// The process in the background.
struct Background {
    child: Child,
    /// What it says.
    log: File,
    /// Where that is until the folder belongs to it.
    early: PathBuf,
}

impl Background {
    fn spawn(data: &DataFolder, reads_input: bool) -> anyhow::Result<Self> {
        let early = data.early_log(std::process::id());
        let context = || format!("cannot write the log {}", early.display());
        // What is said may be about anything that is served here.
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).append(true).mode(0o600);
        let log = options.open(&early).with_context(context)?;
        log.set_len(0).with_context(context)?;
        let mut command = Command::new(std::env::current_exe().context("the program cannot find itself")?);
        command.args(std::env::args_os().skip(1)).env(LOG_VARIABLE, &early);
        command.stdin(if reads_input { Stdio::inherit() } else { Stdio::null() });
        command.stdout(log.try_clone()?).stderr(log.try_clone()?);
        let child = command.spawn().context("cannot start a process in the background")?;
        Ok(Self { child, log, early })
    }

    /// Tells what the process has said so far.
    fn relay(&mut self) {
        let mut text = String::new();
        // What cannot be read is in the log for others.
        let _ = self.log.rewind().and_then(|()| self.log.read_to_string(&mut text));
        eprint!("{text}");
    }

    /// Waits until everything is applied.
    async fn serving(&mut self, data: &DataFolder) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            // A process that has failed had its reasons, and told them.
            if let Some(status) = self.child.try_wait()? {
                self.relay();
                // It is gone when the folder was that process's own.
                let _ = fs::remove_file(&self.early);
                std::process::exit(status.code().unwrap_or(1));
            }
            let is_there = data.occupant()? == i32::try_from(self.child.id()).ok();
            if is_there && data.serving().is_some() {
                return Ok(());
            }
            if begun.elapsed() > START_LIMIT {
                let problem = format!("skep up (process {}) has not started in {START_LIMIT:?}", self.child.id());
                let (log, down) = (data.log(), data.command("down"));
                let hint = format!("it goes on trying; see {}, or end it with {down}", log.display());
                return Err(Hinted::new(problem).hint(hint).into());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Since when endpoints have been seen to fail.
#[derive(Debug, Default)]
struct Failures(BTreeMap<String, Instant>);

impl Failures {
    /// The endpoints that may still become ready, as they are now. What was left behind by a life before this one, such as
    /// a container that ended with it, looks like a failure until it is started again: only one that stays is one.
    fn waiting(&mut self, endpoints: &[Endpoint], now: Instant) -> Vec<String> {
        let mut failing = BTreeMap::new();
        let mut waiting = Vec::new();
        for endpoint in endpoints.iter().filter(|endpoint| !endpoint.ready && endpoint.phase != "Stopped") {
            let name = endpoint.full_name();
            let since = self.0.get(&name).copied().unwrap_or(now);
            let is_failing = endpoint.phase == "Failed";
            if is_failing {
                failing.insert(name.clone(), since);
            }
            if !is_failing || now.duration_since(since) < FAILURE_STAYS {
                waiting.push(name);
            }
        }
        self.0 = failing;
        waiting
    }
}

/// The endpoints, and whether all balancers have got their ports.
async fn look(client: &Client) -> anyhow::Result<(Vec<Endpoint>, bool)> {
    let observed = Observed::now(client).await?;
    let mut offered = observed.services.iter().filter(|service| {
        let spec = service.spec.as_ref();
        spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
    });
    let is_complete = offered.all(|service| !skep_node::service::local_ports(service).is_empty());
    Ok((endpoint::endpoints(&observed), is_complete))
}

/// Waits until all endpoints are ready, or known to fail, or for as long as anybody would; and asks them for their tools.
async fn ready(client: &Client) -> anyhow::Result<Vec<Endpoint>> {
    let begun = Instant::now();
    let states = |endpoints: &[Endpoint]| endpoints.iter().map(|one| (one.full_name(), one.ready)).collect::<Vec<_>>();
    let mut told = false;
    let mut failures = Failures::default();
    loop {
        let (endpoints, is_complete) = look(client).await?;
        let is_late = begun.elapsed() > READY_LIMIT;
        let waiting = failures.waiting(&endpoints, Instant::now());
        if is_late || (is_complete && waiting.is_empty()) {
            let before = states(&endpoints);
            let asked = endpoint::ask_all(endpoints).await;
            // That somebody else has a port may be known a moment after pods are ready.
            if is_late || before == states(&look(client).await?.0) {
                return Ok(asked);
            }
        }
        if begun.elapsed() > SILENCE && !told {
            let limit = READY_LIMIT.as_secs();
            eprintln!("waiting at most {limit} s for {}; it goes on without this command, too", waiting.join(", "));
            told = true;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What keeps this from being a success.
fn verdict(endpoints: &[Endpoint], data: &DataFolder) -> Result<(), Hinted> {
    let (failed, late): (Vec<&Endpoint>, Vec<&Endpoint>) = endpoints
        .iter()
        .filter(|endpoint| !endpoint.ready && endpoint.phase != "Stopped")
        .partition(|endpoint| endpoint.phase == "Failed");
    let names = |endpoints: &[&Endpoint]| {
        let named = endpoints.iter().map(|one| match &one.message {
            Some(message) => format!("{} ({})", one.full_name(), message.lines().next().unwrap_or_default()),
            None => format!("{} ({})", one.full_name(), one.phase),
        });
        named.collect::<Vec<_>>().join(", ")
    };
    let goes_on = format!(
        "skep up goes on in the background: {} and {} show more, {} stops it",
        data.command("status"),
        data.command("logs NAME"),
        data.command("down")
    );
    if !failed.is_empty() {
        return Err(Hinted::new(format!("not served: {}", names(&failed))).hint(goes_on));
    }
    if !late.is_empty() {
        let problem = format!("not ready yet after {} s: {}", READY_LIMIT.as_secs(), names(&late));
        return Err(Hinted::new(problem).hint(goes_on).exit_code(NOT_YET));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::{exit_code, report};

    fn endpoint(name: &str, phase: &str, message: Option<&str>) -> Endpoint {
        Endpoint {
            namespace: "n".to_owned(),
            name: name.to_owned(),
            phase: phase.to_owned(),
            ready: phase == "Ready",
            message: message.map(str::to_owned),
            ..Endpoint::default()
        }
    }

    // After a kill -9 the containers of the life before are found ended, and started again a moment later.
    #[test]
    fn what_failed_in_a_life_before_is_waited_for() {
        let (mut failures, begun) = (Failures::default(), Instant::now());
        let mut waiting = |seconds, phase: &str| {
            let endpoints = [endpoint("a", phase, None), endpoint("b", "Ready", None), endpoint("c", "Stopped", None)];
            failures.waiting(&endpoints, begun + Duration::from_secs(seconds))
        };
        assert_eq!(waiting(0, "Failed"), ["n/a"], "it may be from before");
        assert_eq!(waiting(2, "Pending"), ["n/a"]);
        assert!(waiting(3, "Ready").is_empty());
        assert_eq!(waiting(6, "Failed"), ["n/a"], "it is another failure than the first");
        assert_eq!(waiting(10, "Failed"), ["n/a"]);
        assert!(waiting(11, "Failed").is_empty(), "it stays");
    }

    #[test]
    fn what_is_not_served_is_told_with_a_code_of_its_own() {
        let data = DataFolder::try_from(crate::cli::DataArgs { data_dir: Some("/data".into()) }).unwrap();
        let told = |endpoints: &[Endpoint]| {
            let error = anyhow::Error::new(verdict(endpoints, &data).unwrap_err());
            assert!(report(&error).contains("skep status --data-dir /data and skep logs NAME --data-dir /data show"));
            (exit_code(&error), report(&error).lines().next().unwrap().to_owned())
        };
        let good = [endpoint("a", "Ready", Some("a note")), endpoint("b", "Stopped", None)];
        assert!(verdict(&good, &data).is_ok());
        let late = endpoint("c", "Pending", None);
        let failed = endpoint("d", "Failed", Some("CrashLoopBackOff: back-off 10s"));
        assert_eq!(
            told(std::slice::from_ref(&late)),
            (Some(4), "error: not ready yet after 60 s: n/c (Pending)".to_owned())
        );
        assert_eq!(told(&[late, failed]), (None, "error: not served: n/d (CrashLoopBackOff: back-off 10s)".to_owned()));
    }
}
