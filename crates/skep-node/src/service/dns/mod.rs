//! The name server of the pods.
//!
//! It knows the cluster. Names of the rest of the world go to the name servers that the machine uses, where pods can
//! reach the world at all; otherwise they fail at once. A name of the cluster that stands for another one is answered with
//! what that leads to, wherever it is: clients do not ask again.

mod answer;
mod upstream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::directory::Directory;
use answer::{Answer, LIFE, answer};

/// What fits into a message without a further word between the two sides.
const SMALLEST: u16 = 512;
const LARGEST: u16 = 4_096;
/// How many questions are worked on at a time; more are not read.
const AT_ONCE: usize = 256;
const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// How many names of the cluster may stand for each other, one after another.
const LONGEST_CHAIN: usize = 8;

/// A name server that is bound to its address.
#[derive(Debug)]
pub(crate) struct NameServer {
    udp: Arc<UdpSocket>,
    tcp: TcpListener,
    known: Arc<Known>,
}

#[derive(Debug)]
struct Known {
    directory: watch::Receiver<Directory>,
    forward: Option<SocketAddr>,
}

impl NameServer {
    pub(crate) async fn bind(
        address: SocketAddr,
        directory: watch::Receiver<Directory>,
        forward: Option<SocketAddr>,
    ) -> io::Result<Self> {
        // Port 0 is for tests: both sockets have the same one, which is rarely taken by packets.
        let tcp = TcpListener::bind(address).await?;
        let udp = Arc::new(UdpSocket::bind(tcp.local_addr()?).await?);
        Ok(Self { udp, tcp, known: Arc::new(Known { directory, forward }) })
    }

    #[cfg(test)]
    fn address(&self) -> SocketAddr {
        self.udp.local_addr().unwrap()
    }

    /// Answers for ever.
    pub(crate) async fn serve(self) {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        tokio::join!(packets(self.udp, self.known.clone(), room.clone()), streams(self.tcp, self.known, room));
    }
}

async fn packets(socket: Arc<UdpSocket>, known: Arc<Known>, room: Arc<Semaphore>) {
    let mut buffer = vec![0; usize::from(LARGEST)];
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else { continue };
        let question = buffer[..length].to_vec();
        let (socket, known) = (socket.clone(), known.clone());
        tokio::spawn(async move {
            if let Some(answer) = known.answer(&question, true).await {
                // A client that has gone away does not need it.
                let _ = socket.send_to(&answer, client).await;
            }
            drop(permit);
        });
    }
}

async fn streams(listener: TcpListener, known: Arc<Known>, room: Arc<Semaphore>) {
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let known = known.clone();
        tokio::spawn(async move {
            // However the conversation ends, it is over.
            let _ = converse(stream, &known).await;
            drop(permit);
        });
    }
}

async fn converse(mut stream: TcpStream, known: &Known) -> io::Result<()> {
    loop {
        let Ok(length) = timeout(IDLE_LIMIT, stream.read_u16()).await? else { return Ok(()) };
        let mut question = vec![0; usize::from(length)];
        timeout(IDLE_LIMIT, stream.read_exact(&mut question)).await??;
        let Some(answer) = known.answer(&question, false).await else { return Ok(()) };
        let Ok(length) = u16::try_from(answer.len()) else { return Ok(()) };
        stream.write_u16(length).await?;
        stream.write_all(&answer).await?;
    }
}

impl Known {
    /// The answer to a message; none to something that is not a question.
    async fn answer(&self, bytes: &[u8], packet: bool) -> Option<Vec<u8>> {
        let question = Message::from_vec(bytes).ok()?;
        if question.metadata.message_type != MessageType::Query {
            return None;
        }
        let mut message = Message::new(question.metadata.id, MessageType::Response, question.metadata.op_code);
        message.metadata = Metadata::response_from_request(&question.metadata);
        message.metadata.authoritative = true;
        message.metadata.recursion_available = self.forward.is_some();
        message.add_queries(question.queries.iter().cloned());
        if question.metadata.op_code != OpCode::Query || question.queries.len() != 1 {
            message.metadata.response_code = ResponseCode::NotImp;
            return message.to_vec().ok();
        }
        let query = &question.queries[0];
        let found = answer(&self.directory.borrow(), query.name(), query.query_type());
        match found {
            Answer::Records(records) if records.is_empty() => drop(message.add_authority(authority())),
            Answer::Records(records) => match self.followed(records, question.metadata.id, query.query_type()).await {
                Some(records) => drop(message.add_answers(records)),
                None => message.metadata.response_code = ResponseCode::ServFail,
            },
            Answer::NoName => {
                message.metadata.response_code = ResponseCode::NXDomain;
                message.add_authority(authority());
            }
            Answer::Elsewhere => match self.forward {
                Some(server) => return self.forwarded(server, bytes, message).await,
                None => message.metadata.response_code = ResponseCode::NXDomain,
            },
        }
        let answer = message.to_vec().ok()?;
        let room = question.max_payload().clamp(SMALLEST, LARGEST);
        if packet && answer.len() > usize::from(room) { message.truncate().to_vec().ok() } else { Some(answer) }
    }

    /// Records with those that their last one stands for; none when whoever knows them does not answer. What cannot be
    /// known here, such as names of a world that cannot be reached, is left out.
    async fn followed(&self, mut records: Vec<Record>, id: u16, kind: RecordType) -> Option<Vec<Record>> {
        if kind == RecordType::CNAME || kind == RecordType::ANY {
            return Some(records);
        }
        for _ in 0..LONGEST_CHAIN {
            let Some(RData::CNAME(target)) = records.last().map(|record| &record.data) else { break };
            let target = target.0.clone();
            let found = answer(&self.directory.borrow(), &target, kind);
            match (found, self.forward) {
                (Answer::Records(more), _) if !more.is_empty() => records.extend(more),
                (Answer::Elsewhere, Some(server)) => {
                    records.extend(upstream::records(server, id, target, kind).await?);
                    break;
                }
                _ => break,
            }
        }
        Some(records)
    }

    async fn forwarded(&self, server: SocketAddr, question: &[u8], mut message: Message) -> Option<Vec<u8>> {
        if let Some(answer) = upstream::exchange(server, question).await {
            return Some(answer);
        }
        message.metadata.response_code = ResponseCode::ServFail;
        message.to_vec().ok()
    }
}

/// Says for how long a missing name may be taken for missing.
fn authority() -> Record {
    let domain = Name::from_labels(answer::DOMAIN.map(str::as_bytes)).unwrap_or_default();
    let name = |label: &str| domain.prepend_label(label).unwrap_or_else(|_| domain.clone());
    let soa = SOA::new(name("ns"), name("hostmaster"), 1, 7_200, 1_800, 86_400, LIFE);
    Record::from_rdata(domain.clone(), LIFE, RData::SOA(soa))
}

#[cfg(test)]
mod tests;
