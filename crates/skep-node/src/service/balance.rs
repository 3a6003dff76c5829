//! Which of several servers gets the next connection.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

/// How many clients are remembered; beyond that the ones not seen for the longest time are forgotten.
const REMEMBERED: usize = 10_000;

/// The servers of one port, and who went where.
#[derive(Debug, Default)]
pub(super) struct Balance {
    backends: Vec<SocketAddr>,
    affinity: Option<Duration>,
    turn: usize,
    clients: HashMap<IpAddr, (SocketAddr, Instant)>,
}

impl Balance {
    /// Takes over what is known now. Clients stay where they are as long as that server is there.
    pub(super) fn update(&mut self, backends: Vec<SocketAddr>, affinity: Option<Duration>) {
        self.clients.retain(|_, (backend, _)| affinity.is_some() && backends.contains(backend));
        self.backends = backends;
        self.affinity = affinity;
    }

    /// Whether a server is still one.
    pub(super) fn has(&self, backend: SocketAddr) -> bool {
        self.backends.contains(&backend)
    }

    /// The servers to try, in this order.
    pub(super) fn pick(&mut self, client: IpAddr, now: Instant) -> Vec<SocketAddr> {
        if self.backends.is_empty() {
            return Vec::new();
        }
        let start = match (self.affinity, self.clients.get(&client)) {
            (Some(limit), Some((backend, seen))) if now.duration_since(*seen) < limit => {
                self.backends.iter().position(|other| other == backend)
            }
            _ => None,
        };
        let chosen = start.unwrap_or_else(|| {
            self.turn = self.turn.wrapping_add(1);
            self.turn % self.backends.len()
        });
        let mut order = self.backends.clone();
        order.rotate_left(chosen);
        if start.is_none() {
            // The next connection of this client may come before this one has found its server.
            self.remember(client, order[0], now);
        }
        order
    }

    /// The client has been connected to this server.
    pub(super) fn remember(&mut self, client: IpAddr, backend: SocketAddr, now: Instant) {
        let Some(limit) = self.affinity else { return };
        self.clients.insert(client, (backend, now));
        if self.clients.len() > REMEMBERED {
            self.clients.retain(|_, (_, seen)| now.duration_since(*seen) < limit);
            let oldest = self.clients.iter().min_by_key(|(_, (_, seen))| *seen).map(|(client, _)| *client);
            if self.clients.len() > REMEMBERED
                && let Some(oldest) = oldest
            {
                self.clients.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 244, 0, last], 80))
    }

    fn from(last: u8) -> IpAddr {
        IpAddr::from([10, 244, 1, last])
    }

    #[tokio::test]
    async fn everybody_gets_a_turn() {
        let mut balance = Balance::default();
        assert!(balance.pick(from(1), Instant::now()).is_empty());
        balance.update(vec![at(1), at(2), at(3)], None);
        let firsts: Vec<_> = (0..6).map(|_| balance.pick(from(1), Instant::now())[0]).collect();
        for server in [at(1), at(2), at(3)] {
            assert_eq!(firsts.iter().filter(|first| **first == server).count(), 2);
        }
        assert_eq!(balance.pick(from(1), Instant::now()).len(), 3);
    }

    #[tokio::test]
    async fn clients_stay_for_a_while() {
        let mut balance = Balance::default();
        let minute = Duration::from_mins(1);
        balance.update(vec![at(1), at(2), at(3)], Some(minute));
        let now = Instant::now();
        let first = balance.pick(from(1), now)[0];
        assert_eq!(balance.pick(from(1), now)[0], first, "both may be under way");
        balance.remember(from(1), first, now);
        for _ in 0..5 {
            assert_eq!(balance.pick(from(1), now + minute / 2)[0], first);
        }
        let others: Vec<_> = (0..3).map(|_| balance.pick(from(1), now + minute * 2)[0]).collect();
        assert!(others.iter().any(|other| *other != first), "the time is over");
        balance.remember(from(1), first, now);
        balance.update(vec![at(9)], Some(minute));
        assert_eq!(balance.pick(from(1), now)[0], at(9), "its server is gone");
    }
}
