//! Somebody whom a step depends on, and what can be wrong with them.

use std::sync::Arc;

use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use tokio::net::TcpSocket;
use tokio::sync::OwnedRwLockWriteGuard;

use crate::transparent::server::{Answer, Server, reply};

/// Far more than anybody has to say to a proxy.
pub(super) const MEGABYTES: usize = 10 << 20;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// Nobody takes connections.
    Absence,
    /// Somebody takes them, and says nothing.
    Silence,
    Garbage,
    /// What is said is good, and 10 MiB of nothing come behind it.
    Megabytes,
}

impl Fault {
    pub(super) const ALL: [Self; 4] = [Self::Absence, Self::Silence, Self::Garbage, Self::Megabytes];
}

/// Somebody with whom something is wrong.
pub(super) struct Dependency {
    pub(super) address: String,
    healthy: Answer,
    state: State,
}

enum State {
    /// The address is nobody else's, and nobody listens there.
    Absent(TcpSocket),
    Silent(Server, OwnedRwLockWriteGuard<()>),
    Talking(Server),
}

impl Dependency {
    pub(super) async fn with(fault: Fault, healthy: &Answer) -> Self {
        let good = Arc::clone(healthy);
        let state = match fault {
            Fault::Absence => {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
                State::Absent(socket)
            }
            Fault::Silence => {
                let server = Server::start(move |seen| good(seen)).await;
                let held = server.hold();
                State::Silent(server, held)
            }
            Fault::Garbage => State::Talking(Server::start(|_| reply(200, &[], "<html>hunter2")).await),
            Fault::Megabytes => State::Talking(Server::start(move |seen| enlarged(&good, seen)).await),
        };
        let address = match &state {
            State::Absent(socket) => socket.local_addr().unwrap().to_string(),
            State::Silent(server, _) | State::Talking(server) => server.address.clone(),
        };
        Self { address, healthy: Arc::clone(healthy), state }
    }

    /// From now on nothing is wrong, at the same address.
    pub(super) fn heal(self) -> Server {
        let healthy = self.healthy;
        match self.state {
            State::Absent(socket) => Server::start_on(socket.listen(64).unwrap(), None, move |seen: &_| healthy(seen)),
            // What was asked meanwhile is answered now, to nobody.
            State::Silent(server, _held) => server,
            State::Talking(server) => {
                server.replace(move |seen| healthy(seen));
                server
            }
        }
    }
}

/// A good answer with much behind it that changes nothing about it.
fn enlarged(good: &Answer, seen: &crate::transparent::server::Seen) -> crate::transparent::server::Reply {
    let (head, body) = good(seen).into_parts();
    // It is there already.
    let said = body.collect().now_or_never().unwrap().unwrap().to_bytes();
    let mut large = reply(head.status.as_u16(), &[], [&said[..], &vec![b' '; MEGABYTES]].concat());
    *large.headers_mut() = head.headers;
    large
}
