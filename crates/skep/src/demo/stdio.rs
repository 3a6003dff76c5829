//! One client on standard input and output: a message per line.

use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::call::Call;
use super::era::{Era, Surroundings, classify};
use super::message::{self, Fault, INVALID_REQUEST, Message, Request};
use super::outbox::Outbox;
use super::session::Session;
use super::{Demo, batch, limits, methods};

/// Answers until the input ends or the server stops. Requests that run at the end of the input are still answered, if
/// that does not take long.
pub(crate) async fn serve(
    demo: &Arc<Demo>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel(limits::QUEUED_MESSAGES);
    let writer = tokio::spawn(write(receiver, output));
    let ended = demo.stop.child_token();
    let session = Session::new(demo, Outbox::Queue(sender.clone()), ended.clone());
    let mut client = Client { demo: Arc::clone(demo), session, outbox: Outbox::Queue(sender), tasks: JoinSet::new() };
    let mut input = BufReader::new(input);
    let result = loop {
        let line = tokio::select! {
            line = read_line(&mut input) => line,
            () = demo.stop.cancelled() => break Ok(()),
        };
        match line {
            Ok(Some(Line::Whole(line))) => client.take(&line).await,
            Ok(Some(Line::TooLong)) => {
                let fault = Fault::new(INVALID_REQUEST, "the message is too long");
                client.outbox.send(fault.answer(None)).await;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let running = async { while client.tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits::STOP_GRACE, running).await;
    ended.cancel();
    // The writer ends when nobody can send to it any more.
    drop(client);
    demo.finish().await;
    writer.await.map_err(io::Error::other)?.and(result)
}

async fn write(mut messages: mpsc::Receiver<Value>, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        output.write_all(format!("{message}\n").as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// The next line without its end. One that is too long is read and thrown away.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let read = input.fill_buf().await?;
        if read.is_empty() {
            return Ok((!line.is_empty()).then_some(Line::Whole(line)));
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        is_too_long |= line.len() + part.len() > limits::MESSAGE_BYTES;
        if is_too_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let used = end.map_or(read.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(if is_too_long { Line::TooLong } else { Line::Whole(line) }));
        }
    }
}

struct Client {
    demo: Arc<Demo>,
    session: Arc<Session>,
    outbox: Outbox,
    tasks: JoinSet<()>,
}

impl Client {
    async fn take(&mut self, line: &[u8]) {
        while self.tasks.try_join_next().is_some() {}
        if line.trim_ascii().is_empty() {
            return;
        }
        let refused = match message::parse(line) {
            Ok(Value::Array(members)) => self.take_batch(members).map_err(|fault| fault.answer(None)),
            Ok(value) => {
                let id = message::readable_id(&value);
                Message::read(value)
                    .and_then(|message| self.take_message(message))
                    .map_err(|fault| fault.answer(id.as_ref()))
            }
            Err(fault) => Err(fault.answer(None)),
        };
        if let Err(answer) = refused {
            self.outbox.send(answer).await;
        }
    }

    fn take_batch(&mut self, members: Vec<Value>) -> Result<(), Fault> {
        let batch = batch::take(&self.session, members)?;
        let (session, outbox) = (Arc::clone(&self.session), self.outbox.clone());
        self.tasks.spawn(async move {
            if let Some(answers) = batch.answer(&session, &outbox).await {
                outbox.send(answers).await;
            }
        });
        Ok(())
    }

    fn take_message(&mut self, message: Message) -> Result<(), Fault> {
        match message {
            Message::Notification { method, params } => self.session.note(&method, &params),
            Message::Response { id, outcome } => self.session.answered(&id, outcome),
            Message::Request(request) => {
                let initialized = self.session.revision().is_some();
                let era = classify(&request, Surroundings::Stdio { initialized }, self.demo.spoken)?;
                let (demo, session, outbox) = (Arc::clone(&self.demo), Arc::clone(&self.session), self.outbox.clone());
                self.tasks.spawn(async move {
                    if let Some(answer) = answer(&demo, &session, &request, era, &outbox).await {
                        outbox.send(answer).await;
                    }
                });
            }
        }
        Ok(())
    }
}

async fn answer(
    demo: &Arc<Demo>,
    session: &Arc<Session>,
    request: &Request,
    era: Era,
    outbox: &Outbox,
) -> Option<Value> {
    let Era::Stateless(envelope) = era else {
        return session.answer(request, outbox.clone()).await;
    };
    let outcome = async {
        let call = Call::alone(demo, envelope, request, outbox.clone())?;
        methods::answer(&call, request).await
    };
    let entry = match session.running.enter(&request.id, &demo.stop) {
        Ok(entry) => entry,
        Err(fault) => return Some(fault.answer(Some(&request.id))),
    };
    tokio::select! {
        outcome = outcome => Some(message::answer(&request.id, outcome)),
        () = entry.cancelled.cancelled() => None,
    }
}
