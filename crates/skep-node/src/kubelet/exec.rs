//! A further process in a container, at whose streams a client sits.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::{mpsc, watch};

use super::conversation::{Conversation, Verdict, listen};
use super::remote::Wanted;
use crate::container::{Container, ExecSpec};
use crate::log::Source;
use crate::pod::Live;

const CHUNK: usize = 16 * 1024;
/// A process that has ended may have left others behind that hold its streams open; silence for so long is their end.
const SILENCE: Duration = Duration::from_secs(2);

/// Runs the command. When this is dropped, because the client has gone, the process is killed.
pub(super) async fn run(live: Live, argv: Vec<String>, wanted: Wanted, conversation: Conversation) -> Verdict {
    let mut env = live.env.to_vec();
    if wanted.tty && !env.iter().any(|(name, _)| name == "TERM") {
        env.push(("TERM".to_owned(), "xterm".to_owned()));
    }
    let spec = ExecSpec { argv, env, stdin: wanted.stdin, tty: wanted.tty };
    let mut process = match live.container.exec(&spec).await {
        Ok(process) => process,
        Err(error) => return Verdict::Failed(format!("error executing command in container: {error}")),
    };
    let Conversation { mut input, output } = conversation;
    let terminal = process.terminal();
    let place = place(&mut process, wanted.stdin);
    let (out, side) = (process.take_stdout(), process.take_stderr());
    let (ended, over) = watch::channel(false);
    let finish = async {
        let exit = process.wait().await;
        // The readers below live as long as this does.
        let _ = ended.send(true);
        exit
    };
    let ear = |wanted: bool| wanted.then(|| output.clone());
    let work = async {
        let pass_on = (
            read(out, Source::Output, ear(wanted.stdout), over.clone()),
            read(side, Source::Error, ear(wanted.stderr), over.clone()),
            read(terminal.clone(), Source::Output, ear(wanted.stdout), over.clone()),
        );
        tokio::join!(finish, pass_on.0, pass_on.1, pass_on.2).0
    };
    let hear = async {
        listen(&mut input, place, terminal.as_ref()).await;
        std::future::pending().await
    };
    tokio::select! {
        exit = work => Verdict::Exit(exit),
        verdict = hear => verdict,
    }
}

/// Where the process reads.
fn place(process: &mut Container, wanted: bool) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
    if !wanted {
        return None;
    }
    match process.take_stdin() {
        Some(stdin) => Some(Box::new(stdin)),
        None => process.terminal().map(|terminal| Box::new(terminal) as _),
    }
}

/// Passes on what the process prints, to its end. What nobody wants is read all the same, so that it can go on.
async fn read(
    stream: Option<impl AsyncRead + Unpin>,
    source: Source,
    mut ear: Option<mpsc::Sender<(Source, Bytes)>>,
    over: watch::Receiver<bool>,
) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = tokio::select! {
            biased;
            read = stream.read(&mut buffer) => read,
            () = silence(over.clone()) => return,
        };
        let Ok(length @ 1..) = read else { return };
        if let Some(open) = &ear
            && open.send((source, Bytes::copy_from_slice(&buffer[..length]))).await.is_err()
        {
            ear = None;
        }
    }
}

async fn silence(mut over: watch::Receiver<bool>) {
    // Whoever could tell that it is over is gone: then it is.
    let _ = over.wait_for(|over| *over).await;
    tokio::time::sleep(SILENCE).await;
}
