//! `skep doctor`.

mod programs;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use rustix::fs::{Access, access, statvfs};
use serde::Serialize;
use skep_node::isolation;

use crate::cli::{DoctorArgs, TextFormat};
use crate::data_folder::DataFolder;
use crate::hint::Hinted;
use crate::output::{self, Table};

const MEBIBYTE: u64 = 1024 * 1024;
/// With less, the API server cannot even keep its data.
const LEAST_SPACE: u64 = 64 * MEBIBYTE;
/// With less, packages may not find room.
const USUAL_SPACE: u64 = 1024 * MEBIBYTE;

/// What was found out about one thing.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    check: &'static str,
    state: State,
    found: String,
    needed_for: &'static str,
    /// What can be done: alternatives.
    remedy: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    /// `skep up` works without it.
    Missing,
    /// `skep up` does not work.
    Bad,
}

pub(super) fn run(args: DoctorArgs) -> anyhow::Result<()> {
    let data = DataFolder::try_from(args.data)?;
    let mut findings = vec![namespaces(), folder(&data), port(&data, args.listen), space(data.path())];
    findings.extend(programs::look());
    output::print(&match args.output {
        TextFormat::Text => text(&findings),
        TextFormat::Json => serde_json::to_string_pretty(&findings)? + "\n",
    })?;
    let bad: Vec<&str> = findings.iter().filter(|found| found.state == State::Bad).map(|found| found.check).collect();
    if bad.is_empty() {
        return Ok(());
    }
    Err(Hinted::new(format!("skep up cannot work here: {}", bad.join(", ")))
        .hint("do what is said above, and look again")
        .into())
}

fn text(findings: &[Finding]) -> String {
    let mut table = Table::new(["STATE", "CHECK", "NEEDED FOR", "FOUND"]);
    for finding in findings {
        let state = match finding.state {
            State::Good => "good",
            State::Missing => "missing",
            State::Bad => "bad",
        };
        table.row([state, finding.check, finding.needed_for, &finding.found]);
    }
    let advice = findings.iter().filter(|finding| !finding.remedy.is_empty()).map(|finding| {
        let lines = finding.remedy.iter().map(|line| format!("  {line}\n"));
        format!("\n{}:\n{}", finding.check, lines.collect::<String>())
    });
    table.text() + &advice.collect::<String>()
}

fn namespaces() -> Finding {
    let (state, found, remedy) = match isolation::probe() {
        Ok(()) => (State::Good, "allowed".to_owned(), Vec::new()),
        Err(refusal) => (State::Missing, refusal.to_string(), refusal.remedy.lines().map(str::to_owned).collect()),
    };
    Finding { check: "namespaces", state, found, needed_for: "pods with a network and files of their own", remedy }
}

fn folder(data: &DataFolder) -> Finding {
    let path = data.path();
    let finding = |state, found: String, remedy: Vec<String>| Finding {
        check: "data folder",
        state,
        found: format!("{}: {found}", path.display()),
        needed_for: "everything that is to outlive skep up",
        remedy,
    };
    let elsewhere = || vec!["name a folder that you may write to with --data-dir".to_owned()];
    match data.occupant() {
        Ok(Some(process)) => return finding(State::Good, format!("skep up runs on it, process {process}"), Vec::new()),
        Ok(None) => {}
        Err(error) => return finding(State::Bad, error.to_string(), elsewhere()),
    }
    let place = existing(path);
    if !place.is_dir() {
        return finding(State::Bad, format!("{} is not a folder", place.display()), elsewhere());
    }
    match access(place, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if place == path => finding(State::Good, "there".to_owned(), Vec::new()),
        Ok(()) => finding(State::Good, "will be made".to_owned(), Vec::new()),
        Err(error) => finding(State::Bad, format!("{} cannot be written: {error}", place.display()), elsewhere()),
    }
}

/// The folder itself, or the nearest above it that exists.
fn existing(path: &Path) -> &Path {
    let here = if path.is_absolute() { Path::new("/") } else { Path::new(".") };
    path.ancestors().find(|folder| !folder.as_os_str().is_empty() && folder.exists()).unwrap_or(here)
}

fn port(data: &DataFolder, listen: SocketAddr) -> Finding {
    let is_ours = data.serving().is_some_and(|url| url == format!("https://{listen}"))
        && data.occupant().is_ok_and(|occupant| occupant.is_some());
    let (state, found, remedy) = match TcpListener::bind(listen) {
        Ok(_) => (State::Good, format!("{listen} is free"), Vec::new()),
        Err(_) if is_ours => (State::Good, format!("{listen} is that of skep up, which runs"), Vec::new()),
        Err(error) => (
            State::Bad,
            format!("{listen}: {error}"),
            vec![
                format!("see who listens there: ss -ltnp 'sport = :{}'", listen.port()),
                "or choose another address: skep up --listen 127.0.0.1:0".to_owned(),
            ],
        ),
    };
    Finding { check: "port", state, found, needed_for: "the API server", remedy }
}

fn space(path: &Path) -> Finding {
    let place = existing(path);
    let needed_for = "data and packages";
    let finding = |state, found: String, remedy| Finding { check: "disk space", state, found, needed_for, remedy };
    let free = match statvfs(place) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(error) => return finding(State::Bad, format!("{}: {error}", place.display()), Vec::new()),
    };
    let found = format!("{} MiB free", free / MEBIBYTE);
    let remedy = || vec!["make room, or name a folder on another disk with --data-dir".to_owned()];
    match free {
        ..LEAST_SPACE => finding(State::Bad, found, remedy()),
        LEAST_SPACE..USUAL_SPACE => finding(State::Missing, found, remedy()),
        _ => finding(State::Good, found, Vec::new()),
    }
}
