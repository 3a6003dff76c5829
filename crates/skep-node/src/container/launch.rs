//! The helper of a container, seen from the program that started it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use tokio::sync::{oneshot, watch};

use super::init;
use super::protocol::{MAIN, News, Order, Program, World};
use super::{Exit, StartError};
use crate::channel::{AsyncChannel, Channel};
use crate::sys::{self, Helper, Namespaces, Pollable};

/// Why there is no helper.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error("cannot make the namespaces: {0}")]
    Namespaces(#[source] io::Error),
    #[error("cannot write the user map: {0}")]
    Map(#[source] io::Error),
    #[error("cannot start the helper: {0}")]
    Start(#[source] io::Error),
}

impl From<LaunchError> for StartError {
    fn from(error: LaunchError) -> Self {
        let (step, cause) = match &error {
            LaunchError::Namespaces(cause) => ("make the namespaces of a container", cause),
            LaunchError::Map(cause) => ("write the user map", cause),
            LaunchError::Start(cause) => ("start the helper of a container", cause),
        };
        Self::Kernel { step: step.to_owned(), cause: cause.to_string() }
    }
}

/// A process that the helper was asked to start.
#[derive(Debug)]
pub(crate) struct Watched {
    pub id: u32,
    pub terminal: Option<OwnedFd>,
    pub ending: Ending,
}

/// The end of a process, for any number of those who wait for it.
#[derive(Debug)]
pub(crate) struct Ending(watch::Receiver<Option<Exit>>);

impl Ending {
    pub async fn wait(&self) -> Exit {
        let mut exit = self.0.clone();
        // The sender is gone without a word only when the asynchronous runtime is, and then everything is killed.
        let ended = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        ended.unwrap_or(Exit::by_signal(libc::SIGKILL))
    }
}

/// What is to be told to those who wait for a process.
#[derive(Debug)]
struct Waiting {
    started: Option<oneshot::Sender<Result<Option<OwnedFd>, StartError>>>,
    exit: watch::Sender<Option<Exit>>,
}

type Table = Arc<Mutex<HashMap<u32, Waiting>>>;

/// A running helper. Everything in its container dies when this is dropped.
#[derive(Debug)]
pub(crate) struct Init {
    pid: i32,
    channel: Arc<AsyncChannel>,
    process: Arc<Pollable>,
    namespaces: Namespaces,
    table: Table,
    next: AtomicU32,
}

impl Init {
    /// Starts a helper, and what is to run in the world that it makes.
    pub async fn launch(
        namespaces: Namespaces,
        world: World,
        program: Option<Program>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(Self, Watched), StartError> {
        let (channel, Helper { pid, pidfd: process }) = start(namespaces)?;
        let register = || -> io::Result<_> { Ok((AsyncChannel::new(channel)?, Pollable::new(process)?)) };
        let (channel, process) = register().map_err(StartError::kernel("watch the helper of a container"))?;
        let init = Self {
            pid,
            channel: Arc::new(channel),
            process: Arc::new(process),
            namespaces,
            table: Table::default(),
            next: AtomicU32::new(MAIN),
        };
        tokio::spawn(listen(init.channel.clone(), init.process.clone(), init.table.clone()));
        let main = init.ask(|_| Order::Begin(world, program), descriptors).await?;
        Ok((init, main))
    }

    /// The number of the helper, as this process sees it.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Starts a further process.
    pub async fn run(&self, program: Program, descriptors: &[BorrowedFd<'_>]) -> Result<Watched, StartError> {
        self.ask(|id| Order::Run(id, program), descriptors).await
    }

    /// Sends a signal to a process.
    pub fn signal(&self, id: u32, signal: i32) {
        if let Err(error) = self.channel.send_now(&Order::Signal(id, signal)) {
            tracing::debug!(%error, signal, "the helper of a container takes no signals any more");
        }
    }

    /// Kills everything.
    pub fn kill(&self) {
        match self.namespaces {
            // It sees that nobody is left to work for, and kills all that it started.
            Namespaces::None => self.channel.finish(),
            // The kernel kills everything along with process 1; an error says that there is no such process any more.
            Namespaces::Container | Namespaces::User => {
                let _ = pidfd_send_signal(self.process.get_ref(), Signal::KILL);
            }
        }
    }

    async fn ask(
        &self,
        order: impl FnOnce(u32) -> Order,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Watched, StartError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (started, answer) = oneshot::channel();
        let (exit, watched) = watch::channel(None);
        self.table.lock().insert(id, Waiting { started: Some(started), exit });
        // When the helper is gone, so is the table entry, and the answer below says so.
        if let Err(error) = self.channel.send(&order(id), descriptors).await {
            tracing::debug!(%error, "the helper of a container takes no orders any more");
            self.table.lock().remove(&id);
        }
        let terminal = answer.await.unwrap_or(Err(StartError::Gone))?;
        Ok(Watched { id, terminal, ending: Ending(watched) })
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a helper and waits for its answer to a world without a process.
pub(crate) fn try_world(namespaces: Namespaces, world: World) -> Result<Result<(), StartError>, LaunchError> {
    let (channel, Helper { pidfd: process, .. }) = start(namespaces)?;
    let answer =
        channel.send(&Order::Begin(world, None), &[]).and_then(|()| channel.receive()).map_err(LaunchError::Start)?;
    drop(channel);
    reap(process.as_fd());
    Ok(match answer {
        Some((News::Started(_), _)) => Ok(()),
        Some((News::NotStarted(_, error), _)) => Err(error),
        Some((News::Exited(..), _)) | None => Err(StartError::Gone),
    })
}

fn start(namespaces: Namespaces) -> Result<(Channel, Helper), LaunchError> {
    let (ours, theirs) = Channel::pair().map_err(LaunchError::Start)?;
    let (helper, gate) = sys::start_helper(init::NAME, namespaces, theirs.as_fd()).map_err(LaunchError::Namespaces)?;
    if namespaces == Namespaces::User
        && let Err(error) = write_maps(helper.pid)
    {
        drop(gate);
        reap(helper.pidfd.as_fd());
        return Err(LaunchError::Map(error));
    }
    gate.open().map_err(LaunchError::Start)?;
    Ok((ours, helper))
}

/// Gives the users and groups of a new user namespace: to root all that it has itself, to others themselves as root.
fn write_maps(pid: i32) -> io::Result<()> {
    let folder = format!("/proc/{pid}");
    if rustix::process::geteuid().is_root() {
        for kind in ["uid_map", "gid_map"] {
            fs::write(format!("{folder}/{kind}"), identity_map(&fs::read_to_string(format!("/proc/self/{kind}"))?))?;
        }
        return Ok(());
    }
    fs::write(format!("{folder}/setgroups"), "deny")?;
    fs::write(format!("{folder}/gid_map"), format!("0 {} 1", rustix::process::getegid().as_raw()))?;
    fs::write(format!("{folder}/uid_map"), format!("0 {} 1", rustix::process::geteuid().as_raw()))
}

/// A map in which each number means itself, from the map of the namespace around it.
fn identity_map(around: &str) -> String {
    let lines = around.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (first, count) = (fields.next()?, fields.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    });
    lines.collect()
}

fn reap(process: BorrowedFd<'_>) {
    // An error says that there is nothing to wait for.
    let _ = waitid(WaitId::PidFd(process), WaitIdOptions::EXITED);
}

/// Passes on what the helper says, until it and everything in the container are gone.
async fn listen(channel: Arc<AsyncChannel>, process: Arc<Pollable>, table: Table) {
    let mut main = None;
    loop {
        match channel.receive().await {
            Ok(Some((news, descriptors))) => {
                if let Some(unwanted) = hear(news, descriptors, &table, &mut main)
                    && let Err(error) = channel.send(&Order::Signal(unwanted, libc::SIGKILL), &[]).await
                {
                    tracing::debug!(%error, "the helper of a container takes no signals any more");
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "lost the helper of a container");
                break;
            }
        }
    }
    channel.finish();
    if let Err(error) = process.readable().await {
        tracing::warn!(%error, "cannot wait for the helper of a container");
    }
    reap(process.get_ref().as_fd());
    for (id, waiting) in table.lock().drain() {
        let killed = Exit::by_signal(libc::SIGKILL);
        waiting.exit.send_replace(Some(if id == MAIN { main.unwrap_or(killed) } else { killed }));
    }
}

/// Passes on one thing, and returns the process that nobody wanted any more when it started.
fn hear(news: News, mut descriptors: Vec<OwnedFd>, table: &Table, main: &mut Option<Exit>) -> Option<u32> {
    let mut table = table.lock();
    match news {
        News::Started(id) => {
            let started = table.get_mut(&id)?.started.take()?;
            return started.send(Ok(descriptors.pop())).is_err().then_some(id);
        }
        News::NotStarted(id, error) => {
            let started = table.remove(&id)?.started?;
            // A receiver that is gone has lost its interest.
            let _ = started.send(Err(error));
        }
        // A container is gone when everything in it is.
        News::Exited(MAIN, exit) => *main = Some(exit),
        News::Exited(id, exit) => {
            table.remove(&id)?.exit.send_replace(Some(exit));
        }
    }
    None
}
