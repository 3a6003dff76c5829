//! A process under measurement, or one that takes part.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::HeaderValue;

use super::client::{self, Door};
use super::part::Part;

/// How often a second the kernel counts processor time for others to see.
const TICKS: f64 = 100.0;
const BYTES_PER_KIBIBYTE: f64 = 1024.0;

/// A part that runs in a process of its own. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) door: Door,
}

impl Process {
    /// Starts a part, and waits until it serves clients that show this.
    pub(crate) async fn start(part: &Part, credential: Option<HeaderValue>) -> anyhow::Result<Self> {
        let process = Self::listening(part, credential)?;
        client::wait(&process.door).await?;
        Ok(process)
    }

    /// Starts a part that listens, for clients that show this.
    pub(crate) fn listening(part: &Part, credential: Option<HeaderValue>) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(part.arguments()?)
            // It ends when this end of it does.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a part of the measurement")?;
        let mut line = String::new();
        let output = child.stdout.take().context("it has no output")?;
        let read = BufReader::new(output).read_line(&mut line).map_err(anyhow::Error::from);
        let address = read.and_then(|_| line.trim().parse().context("a part of the measurement did not start"));
        match address {
            Ok(address) => Ok(Self { child, door: Door { address, credential } }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// What it holds in memory, in KiB. The server that it started is not counted.
    pub(crate) fn resident_kibibytes(&self) -> anyhow::Result<f64> {
        Ok(self.memory()?[0])
    }

    /// What of it is not read from files, such as the program itself.
    pub(crate) fn own_kibibytes(&self) -> anyhow::Result<f64> {
        let [resident, from_files] = self.memory()?;
        Ok(resident - from_files)
    }

    /// What it holds in memory, and what of that is read from files, in KiB.
    fn memory(&self) -> anyhow::Result<[f64; 2]> {
        let told = fs::read_to_string(format!("/proc/{}/statm", self.child.id()))?;
        let page = f64::from(u32::try_from(rustix::param::page_size())?) / BYTES_PER_KIBIBYTE;
        let mut pages = told.split(' ').skip(1).map(|count| count.parse::<f64>().map(|count| count * page));
        let [Some(resident), Some(from_files)] = [pages.next(), pages.next()] else { bail!("no resident pages") };
        Ok([resident?, from_files?])
    }

    /// The processor time that it and the processes that it started have used.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        let mut ticks = 0.0;
        let mut left = vec![self.child.id()];
        while let Some(pid) = left.pop() {
            ticks += ticks_of(pid)?;
            for task in fs::read_dir(format!("/proc/{pid}/task"))? {
                let children = fs::read_to_string(task?.path().join("children"))?;
                left.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            }
        }
        Ok(Duration::from_secs_f64(ticks / TICKS))
    }
}

fn ticks_of(pid: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program comes before and may hold anything.
    let after_name = stat.rsplit_once(") ").context("no name in the statistics")?.1;
    let mut fields = after_name.split(' ').skip(11).map(str::parse::<f64>);
    let (user, system) = (fields.next().context("no user time")??, fields.next().context("no system time")??);
    Ok(user + system)
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
