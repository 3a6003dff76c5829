//! What a process inside the namespaces asks of the machine outside: listeners, connections and commands on its network.
//!
//! Each request carries a channel of its own for the answer. Letting go of that channel takes the request back.

mod inherit;
mod pasta;
mod serve;

pub(crate) use inherit::{CHANNEL_VARIABLE, announcement, inherited};
pub(crate) use pasta::NAMES;
pub(crate) use serve::serve;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe;

use crate::channel::{AsyncChannel, Channel};
use crate::container::{Exit, StartError, Streams};

/// The way to the machine outside. Clones share it.
#[derive(Debug, Clone)]
pub struct Broker {
    channel: Arc<AsyncChannel>,
}

/// A port of the machine that no other run of Skep is given.
#[derive(Debug)]
pub struct Reservation {
    _mark: OwnedFd,
}

/// A command to run on the machine, outside of all namespaces, with its network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCommand {
    /// The program, which is looked up in `PATH`, and its arguments.
    pub argv: Vec<String>,
    /// Variables added to those of the broker.
    pub env: Vec<(String, String)>,
    /// Where it runs; the broker's folder when absent.
    pub working_dir: Option<PathBuf>,
}

/// A command that runs outside. Dropping it kills the command and all that it started.
#[derive(Debug)]
pub struct HostProcess {
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
    answers: AsyncChannel,
    exit: Option<Exit>,
}

/// Why the machine outside did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    #[error("{0} is not a loopback address")]
    NotLoopback(SocketAddr),
    #[error("port {} of {} is in use by another program", .0.port(), .0.ip())]
    AddressInUse(SocketAddr),
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    #[error("cannot connect to {host}:{port}: {cause}")]
    Dial {
        /// To whom.
        host: String,
        /// To which port.
        port: u16,
        /// What was answered.
        cause: String,
    },
    #[error(transparent)]
    Command(#[from] StartError),
    #[error("pasta cannot connect the namespaces: {0}")]
    Internet(String),
    #[error("the broker is out of reach")]
    OutOfReach(#[source] io::Error),
}

/// What is asked. The channel for the answer comes along; with a command, its output and errors too.
#[derive(Debug, Serialize, Deserialize)]
enum Request {
    /// On the loopback only.
    Listen(SocketAddr),
    /// Wherever it is.
    ListenForOthers(SocketAddr),
    /// A socket for packets, on the loopback only.
    Bind(SocketAddr),
    /// A mark that a port of the loopback is spoken for, whether or not anybody listens there.
    Reserve(u16),
    /// To a host by its name or address.
    Dial(String, u16),
    Run(HostCommand),
    /// A way to the Internet for the namespaces. Streams come along as with a command.
    Internet,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// The listener or socket comes along.
    Listening,
    /// The error of the operating system.
    NotListening(i32),
    /// The connection comes along.
    Connected,
    /// Why not.
    NotConnected(String),
    Running,
    NotRunning(StartError),
    Ended(Exit),
}

impl Broker {
    /// The broker outside, when this process was started by [`crate::isolation::run_inside`]; otherwise one that does
    /// everything in this process. The first can be had once.
    pub fn connect() -> io::Result<Self> {
        let channel = if let Some(number) = inherited() {
            let socket = crate::sys::take_inherited(number);
            Channel::from_socket(socket.ok_or_else(|| io::Error::other("the broker is connected already"))?)
        } else {
            let (ours, theirs) = Channel::pair()?;
            tokio::spawn(serve(AsyncChannel::new(theirs)?, None));
            ours
        };
        Ok(Self { channel: Arc::new(AsyncChannel::new(channel)?) })
    }

    /// Opens a listener on a loopback address of the machine; port 0 means any that is free.
    pub async fn listen(&self, address: SocketAddr) -> Result<TcpListener, BrokerError> {
        check_loopback(address)?;
        self.open(address, &Request::Listen(address)).await.map(TcpListener::from)
    }

    /// Opens a socket for packets on a loopback address of the machine; port 0 means any that is free.
    pub async fn bind(&self, address: SocketAddr) -> Result<UdpSocket, BrokerError> {
        check_loopback(address)?;
        self.open(address, &Request::Bind(address)).await.map(UdpSocket::from)
    }

    /// Keeps other runs of Skep away from a port of the loopback of the machine, as long as the result is kept.
    pub async fn reserve(&self, port: u16) -> Result<Reservation, BrokerError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.open(address, &Request::Reserve(port)).await.map(|mark| Reservation { _mark: mark })
    }

    /// Opens a listener on any address of the machine: others may reach it, so it has to know whom it talks to.
    pub async fn listen_for_others(&self, address: SocketAddr) -> Result<TcpListener, BrokerError> {
        self.open(address, &Request::ListenForOthers(address)).await.map(TcpListener::from)
    }

    async fn open(&self, address: SocketAddr, request: &Request) -> Result<OwnedFd, BrokerError> {
        let answers = self.ask(request, &[]).await?;
        match next(&answers).await? {
            (Answer::Listening, Some(socket)) => Ok(socket),
            (Answer::NotListening(number), _) => {
                let cause = io::Error::from_raw_os_error(number);
                Err(match cause.kind() {
                    io::ErrorKind::AddrInUse => BrokerError::AddressInUse(address),
                    _ => BrokerError::Listen { address, cause },
                })
            }
            (answer, _) => Err(unexpected(&answer)),
        }
    }

    /// Connects to a host as the machine outside does; it looks up the name, too.
    pub async fn dial(&self, host: &str, port: u16) -> Result<TcpStream, BrokerError> {
        let answers = self.ask(&Request::Dial(host.to_owned(), port), &[]).await?;
        match next(&answers).await? {
            (Answer::Connected, Some(connection)) => Ok(TcpStream::from(connection)),
            (Answer::NotConnected(cause), _) => Err(BrokerError::Dial { host: host.to_owned(), port, cause }),
            (answer, _) => Err(unexpected(&answer)),
        }
    }

    /// Starts a command outside.
    pub async fn run(&self, command: &HostCommand) -> Result<HostProcess, BrokerError> {
        self.start(&Request::Run(command.clone())).await
    }

    /// Connects the namespaces of this process to the Internet, as long as the result is kept. It takes `pasta`, which
    /// may not be there, and a process that was started by [`crate::isolation::run_inside`].
    pub async fn internet(&self) -> Result<HostProcess, BrokerError> {
        let mut process = self.start(&Request::Internet).await?;
        pasta::connected(&mut process).await?;
        Ok(process)
    }

    async fn start(&self, request: &Request) -> Result<HostProcess, BrokerError> {
        let streams = Streams::open(false, false).map_err(BrokerError::OutOfReach)?;
        let answers = self.ask(request, &streams.far()).await?;
        match next(&answers).await? {
            (Answer::Running, _) => {
                let Streams { stdout, stderr, stdin: _, far: _ } = streams;
                Ok(HostProcess { stdout, stderr, answers, exit: None })
            }
            (Answer::NotRunning(error), _) => Err(error.into()),
            (answer, _) => Err(unexpected(&answer)),
        }
    }

    async fn ask(&self, request: &Request, streams: &[BorrowedFd<'_>]) -> Result<AsyncChannel, BrokerError> {
        let send = async {
            let (ours, theirs) = Channel::pair()?;
            let descriptors: Vec<_> = std::iter::once(theirs.as_fd()).chain(streams.iter().copied()).collect();
            self.channel.send(request, &descriptors).await?;
            AsyncChannel::new(ours)
        };
        send.await.map_err(BrokerError::OutOfReach)
    }
}

impl HostProcess {
    /// What it prints, once.
    pub fn take_stdout(&mut self) -> Option<pipe::Receiver> {
        self.stdout.take()
    }

    /// What it prints on the side, once.
    pub fn take_stderr(&mut self) -> Option<pipe::Receiver> {
        self.stderr.take()
    }

    /// Waits until the command and all that it started are gone.
    pub async fn wait(&mut self) -> Result<Exit, BrokerError> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        match next(&self.answers).await? {
            (Answer::Ended(exit), _) => Ok(*self.exit.insert(exit)),
            (answer, _) => Err(unexpected(&answer)),
        }
    }
}

fn check_loopback(address: SocketAddr) -> Result<(), BrokerError> {
    if address.ip().is_loopback() { Ok(()) } else { Err(BrokerError::NotLoopback(address)) }
}

async fn next(answers: &AsyncChannel) -> Result<(Answer, Option<OwnedFd>), BrokerError> {
    let received = answers.receive().await.map_err(BrokerError::OutOfReach)?;
    let (answer, mut descriptors) =
        received.ok_or_else(|| BrokerError::OutOfReach(io::ErrorKind::ConnectionAborted.into()))?;
    Ok((answer, descriptors.pop()))
}

fn unexpected(answer: &Answer) -> BrokerError {
    BrokerError::OutOfReach(io::Error::other(format!("unexpected answer {answer:?}")))
}
