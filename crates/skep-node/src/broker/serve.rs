//! The side of the broker that does what is asked.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use tokio::task::JoinSet;

use super::{Answer, HostCommand, Request, pasta};
use crate::channel::{AsyncChannel, Channel};
use crate::container::{Capabilities, Ending, Identity, Init, Place, Program, Root, StartError, World};
use crate::mark::Mark;
use crate::sys::Namespaces;

/// How long a host may take to answer.
const DIAL_LIMIT: Duration = Duration::from_secs(10);

/// Does what is asked on a channel, until nobody is left to ask and all commands have ended. `inside` is a process in the
/// namespaces of those who ask, if they are in others.
pub(crate) async fn serve(channel: AsyncChannel, inside: Option<i32>) {
    let mut commands = JoinSet::new();
    loop {
        let received = tokio::select! {
            received = channel.receive::<Request>() => received,
            Some(_) = commands.join_next() => continue,
        };
        match received {
            Ok(Some((request, descriptors))) => {
                commands.spawn(answer(request, descriptors, inside));
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "the broker cannot read a request");
                break;
            }
        }
    }
    while commands.join_next().await.is_some() {}
}

async fn answer(request: Request, mut descriptors: Vec<OwnedFd>, inside: Option<i32>) {
    if descriptors.is_empty() {
        return;
    }
    let Ok(answers) = AsyncChannel::new(Channel::from_socket(descriptors.remove(0))) else {
        return;
    };
    let answered = match request {
        Request::Listen(address) | Request::Bind(address) if !address.ip().is_loopback() => {
            answers.send(&Answer::NotListening(libc::EACCES), &[]).await
        }
        Request::Listen(address) | Request::ListenForOthers(address) => {
            open(TcpListener::bind(address), &answers).await
        }
        Request::Bind(address) => open(UdpSocket::bind(address), &answers).await,
        Request::Reserve(port) => open(Mark::set(&format!("port-{port}")).map(|mark| mark.0), &answers).await,
        Request::Dial(host, port) => dial(&host, port, &answers).await,
        Request::Run(command) => run(command, descriptors, &answers).await,
        Request::Internet => match inside {
            Some(process) => {
                let command = pasta::command(process, rustix::process::geteuid().is_root());
                run(command, descriptors, &answers).await
            }
            None => answers.send(&Answer::NotRunning(StartError::NoProgram), &[]).await,
        },
    };
    if let Err(error) = answered {
        tracing::debug!(%error, "nobody waits for an answer of the broker any more");
    }
}

async fn open(opened: std::io::Result<impl AsFd>, answers: &AsyncChannel) -> std::io::Result<()> {
    match opened {
        Ok(socket) => answers.send(&Answer::Listening, &[socket.as_fd()]).await,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            answers.send(&Answer::NotListening(number), &[]).await
        }
    }
}

async fn dial(host: &str, port: u16, answers: &AsyncChannel) -> std::io::Result<()> {
    let connected = tokio::time::timeout(DIAL_LIMIT, tokio::net::TcpStream::connect((host, port))).await;
    match connected {
        Ok(Ok(connection)) => answers.send(&Answer::Connected, &[connection.as_fd()]).await,
        Ok(Err(error)) => answers.send(&Answer::NotConnected(error.to_string()), &[]).await,
        Err(_) => {
            let why = format!("no answer within {} s", DIAL_LIMIT.as_secs());
            answers.send(&Answer::NotConnected(why), &[]).await
        }
    }
}

async fn run(command: HostCommand, streams: Vec<OwnedFd>, answers: &AsyncChannel) -> std::io::Result<()> {
    let (init, ending) = match start(command, streams).await {
        Ok(started) => started,
        Err(error) => return answers.send(&Answer::NotRunning(error), &[]).await,
    };
    answers.send(&Answer::Running, &[]).await?;
    tokio::select! {
        exit = ending.wait() => answers.send(&Answer::Ended(exit), &[]).await,
        // Nothing is ever sent this way: the other side has let go.
        _ = answers.receive::<()>() => {
            init.kill();
            // All of it is to be gone before the broker is.
            ending.wait().await;
            Ok(())
        }
    }
}

async fn start(command: HostCommand, streams: Vec<OwnedFd>) -> Result<(Init, Ending), StartError> {
    let HostCommand { argv, env, working_dir } = command;
    let env = std::env::vars_os().chain(env.into_iter().map(|(name, value)| (name.into(), value.into())));
    let program = Program {
        argv: argv.into_iter().map(Into::into).collect(),
        env: env.collect(),
        working_dir,
        identity: Identity::default(),
        capabilities: Capabilities::default(),
        place: Place::Container,
        tty: false,
    };
    let world = World { root: Root::Shared, hostname: None, network: false };
    let descriptors: Vec<_> = streams.iter().map(OwnedFd::as_fd).collect();
    let (init, main) = Init::launch(Namespaces::None, world, Some(program), &descriptors).await?;
    Ok((init, main.ending))
}
