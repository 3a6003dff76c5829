//! The helper that is process 1 of a container: it starts, signals and reaps, and everything ends with it.

mod identity;
mod privileges;
mod program;
mod reaper;
mod world;

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_child_subreaper, setpgid, umask};

pub(crate) use identity::groups_can_be_set;

use super::Exit;
use super::protocol::{MAIN, News, Order, Place, Program};
use crate::channel::Channel;
use crate::sys::{self, Arrivals, HELPER_CHANNEL};

/// The only argument of a helper.
pub(super) const NAME: &CStr = c"skep-node-init";

/// Does the work of such a helper and never returns, when this process was started as one.
pub(crate) fn become_init() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|argument| argument.as_encoded_bytes() != NAME.to_bytes()) {
        return;
    }
    let code = match serve() {
        Ok(exit) => exit.code,
        Err(error) => {
            eprintln!("{}: {error}", NAME.to_string_lossy());
            1
        }
    };
    std::process::exit(code)
}

/// A process that runs, and how signals reach it.
#[derive(Debug, Clone, Copy)]
struct Running {
    pid: Pid,
    place: Place,
}

#[derive(Debug)]
struct Init {
    channel: Channel,
    running: HashMap<u32, Running>,
}

fn serve() -> io::Result<Exit> {
    let socket =
        sys::take_inherited(HELPER_CHANNEL).ok_or_else(|| io::Error::other("started by hand; it has nothing to do"))?;
    sys::close_on_exec_from(HELPER_CHANNEL)?;
    let arrivals = Arrivals::new()?;
    // Started by way of a link, it would be listed under the name of that.
    rustix::thread::set_name(c"skep-init")?;
    umask(Mode::WGRP | Mode::WOTH);
    // Signals from a terminal are for the program that started this one, which passes on what it wants to.
    setpgid(None, None)?;
    // Where this is not process 1, what it started must still come back to it.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut init = Init { channel: Channel::from_socket(socket), running: HashMap::new() };
    let exit = init.run(&arrivals);
    reaper::kill_all();
    exit
}

impl Init {
    /// Works until the main process has ended or nobody is left to work for.
    fn run(&mut self, arrivals: &Arrivals) -> io::Result<Exit> {
        loop {
            let mut ready = [PollFd::new(&self.channel, PollFlags::IN), PollFd::new(arrivals, PollFlags::IN)];
            poll(&mut ready, None)?;
            let [ordered, signalled] = ready.map(|one| !one.revents().is_empty());
            if signalled {
                while let Some(signal) = arrivals.next()? {
                    if let Some(exit) = self.take_signal(signal)? {
                        return Ok(exit);
                    }
                }
            }
            if ordered {
                match self.channel.receive()? {
                    Some((order, descriptors)) => {
                        if !self.obey(order, descriptors)? {
                            return Ok(Exit::with_code(1));
                        }
                    }
                    None => return Ok(Exit::by_signal(libc::SIGKILL)),
                }
            }
        }
    }

    /// Whether there is anything left to do.
    fn obey(&mut self, order: Order, mut descriptors: Vec<OwnedFd>) -> io::Result<bool> {
        match order {
            Order::Begin(world, program) => {
                let network = (world.network && !descriptors.is_empty()).then(|| descriptors.remove(0));
                match (world::enter(&world, network), program) {
                    (Err(error), _) => {
                        self.channel.send(&News::NotStarted(MAIN, error), &[])?;
                        Ok(false)
                    }
                    (Ok(()), Some(program)) => self.start(MAIN, &program, &descriptors),
                    (Ok(()), None) => self.channel.send(&News::Started(MAIN), &[]).map(|()| true),
                }
            }
            Order::Run(id, program) => self.start(id, &program, &descriptors).map(|_| true),
            Order::Signal(id, signal) => {
                self.signal(id, signal);
                Ok(true)
            }
        }
    }

    /// Whether it runs now.
    fn start(&mut self, id: u32, program: &Program, descriptors: &[OwnedFd]) -> io::Result<bool> {
        let started = program::start(program, descriptors);
        if let Ok(started) = &started {
            self.running.insert(id, Running { pid: started.pid, place: program.place });
        }
        match started {
            Ok(started) => {
                let terminal: Vec<_> = started.terminal.iter().map(OwnedFd::as_fd).collect();
                self.channel.send(&News::Started(id), &terminal)?;
                Ok(true)
            }
            Err(error) => self.channel.send(&News::NotStarted(id, error), &[]).map(|()| false),
        }
    }

    fn signal(&self, id: u32, signal: i32) {
        let (Some(running), Some(signal)) = (self.running.get(&id), Signal::from_named_raw(signal)) else {
            return;
        };
        // A process that is gone by now needs no signal.
        let _ = match running.place {
            Place::Container => kill_process_group(running.pid, signal),
            Place::Enclosure => kill_process(running.pid, signal),
        };
    }

    /// How the main process ended, once it has.
    fn take_signal(&mut self, signal: i32) -> io::Result<Option<Exit>> {
        if signal != libc::SIGCHLD {
            self.signal(MAIN, signal);
            return Ok(None);
        }
        for (pid, exit) in reaper::reap() {
            let Some(id) = self.running.iter().find_map(|(id, one)| (one.pid == pid).then_some(*id)) else {
                continue;
            };
            self.running.remove(&id);
            self.channel.send(&News::Exited(id, exit), &[])?;
            if id == MAIN {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }
}
