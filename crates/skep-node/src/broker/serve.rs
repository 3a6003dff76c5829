//! The side of the broker that does what is asked.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};

use tokio::task::JoinSet;

use super::{Answer, HostCommand, Request};
use crate::channel::{AsyncChannel, Channel};
use crate::container::{Ending, Identity, Init, Place, Program, Root, StartError, World};
use crate::sys::Namespaces;

/// Does what is asked on a channel, until nobody is left to ask and all commands have ended.
pub(crate) async fn serve(channel: AsyncChannel) {
    let mut commands = JoinSet::new();
    loop {
        let received = tokio::select! {
            received = channel.receive::<Request>() => received,
            Some(_) = commands.join_next() => continue,
        };
        match received {
            Ok(Some((request, descriptors))) => {
                commands.spawn(answer(request, descriptors));
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

async fn answer(request: Request, mut descriptors: Vec<OwnedFd>) {
    if descriptors.is_empty() {
        return;
    }
    let Ok(answers) = AsyncChannel::new(Channel::from_socket(descriptors.remove(0))) else {
        return;
    };
    let answered = match request {
        Request::Listen(address) => listen(address, &answers).await,
        Request::Run(command) => run(command, descriptors, &answers).await,
    };
    if let Err(error) = answered {
        tracing::debug!(%error, "nobody waits for an answer of the broker any more");
    }
}

async fn listen(address: SocketAddr, answers: &AsyncChannel) -> std::io::Result<()> {
    let bound = if address.ip().is_loopback() {
        TcpListener::bind(address)
    } else {
        Err(std::io::Error::from_raw_os_error(libc::EACCES))
    };
    match bound {
        Ok(listener) => answers.send(&Answer::Listening, &[listener.as_fd()]).await,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            answers.send(&Answer::NotListening(number), &[]).await
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
        place: Place::Container,
        tty: false,
    };
    let world = World { root: Root::Shared, hostname: None, network: false };
    let descriptors: Vec<_> = streams.iter().map(OwnedFd::as_fd).collect();
    let (init, main) = Init::launch(Namespaces::None, world, Some(program), &descriptors).await?;
    Ok((init, main.ending))
}
