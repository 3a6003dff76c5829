//! Typed messages with descriptors between two processes of this program.
//!
//! A message is one datagram, so that it is sent and received whole or not at all. Its content is JSON in a memory file
//! that travels along: the environment of a container does not fit into a datagram.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sys::Pollable;

/// The most descriptors that a message carries, its content included.
const DESCRIPTORS: usize = 8;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// Two ends of a new connection.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self { socket: one }, Self { socket: other }))
    }

    /// The end that a socket is.
    pub fn from_socket(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Sends a message, and waits until there is room for it.
    pub fn send<T: Serialize>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        send_content(&self.socket, &content_of(message)?, descriptors, SendFlags::empty())
    }

    /// The next message; none when the other end is gone.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        receive_from(&self.socket, RecvFlags::empty())
    }
}

fn send_content(socket: &OwnedFd, content: &File, descriptors: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
    let all: Vec<_> = std::iter::once(content.as_fd()).chain(descriptors.iter().copied()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&all)) {
        return Err(io::Error::other("too many descriptors for a message"));
    }
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, flags | SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_from<T: DeserializeOwned>(socket: &OwnedFd, flags: RecvFlags) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, flags) {
            Ok(received) => break received,
            // Said once, when the other end is closed before it has read everything. What it has sent is still there.
            Err(rustix::io::Errno::CONNRESET) => {}
            Err(error) => return Err(error.into()),
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = control.drain().flat_map(|part| match part {
        RecvAncillaryMessage::ScmRights(rights) => rights.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let content = descriptors.next().ok_or_else(|| io::Error::other("a message arrived without its content"))?;
    let message = read_content(File::from(content))?;
    Ok(Some((message, descriptors.collect())))
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// One end of a connection, in an asynchronous program.
#[derive(Debug)]
pub(crate) struct AsyncChannel {
    socket: Pollable,
}

impl AsyncChannel {
    pub fn new(channel: Channel) -> io::Result<Self> {
        Ok(Self { socket: Pollable::new(channel.socket)? })
    }

    /// Sends a message. A cancelled call has sent all of it or nothing.
    pub async fn send<T: Serialize>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let content = content_of(message)?;
        loop {
            let mut ready = self.socket.writable().await?;
            let sent =
                ready.try_io(|socket| send_content(socket.get_ref(), &content, descriptors, SendFlags::DONTWAIT));
            if let Ok(sent) = sent {
                return sent;
            }
        }
    }

    /// Sends a message, and fails when there is no room for it.
    pub fn send_now<T: Serialize>(&self, message: &T) -> io::Result<()> {
        send_content(self.socket.get_ref(), &content_of(message)?, &[], SendFlags::DONTWAIT)
    }

    /// The next message; none when the other end is gone. A cancelled call has taken nothing.
    pub async fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        loop {
            let mut ready = self.socket.readable().await?;
            if let Ok(received) = ready.try_io(|socket| receive_from(socket.get_ref(), RecvFlags::DONTWAIT)) {
                return received;
            }
        }
    }

    /// Sends no more: the other end sees that this one is gone, but can still be heard.
    pub fn finish(&self) {
        // An end that cannot be shut down has been already.
        let _ = shutdown(self.socket.get_ref(), Shutdown::Write);
    }
}

fn content_of<T: Serialize>(message: &T) -> io::Result<File> {
    let mut content = File::from(memfd_create("message", MemfdFlags::CLOEXEC)?);
    content.write_all(&serde_json::to_vec(message)?)?;
    Ok(content)
}

fn read_content<T: DeserializeOwned>(mut content: File) -> io::Result<T> {
    let mut text = Vec::new();
    content.rewind()?;
    content.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
