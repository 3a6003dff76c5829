//! The name server that the machine uses, which knows the rest of the world.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::LARGEST;

const LIMIT: Duration = Duration::from_secs(4);

/// The answer to a question, as it came; none when there is none in time.
pub(super) async fn exchange(server: SocketAddr, question: &[u8]) -> Option<Vec<u8>> {
    let exchange = async {
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(server).await?;
        socket.send(question).await?;
        let mut buffer = vec![0; usize::from(LARGEST)];
        let length = socket.recv(&mut buffer).await?;
        buffer.truncate(length);
        io::Result::Ok(buffer)
    };
    timeout(LIMIT, exchange).await.ok()?.ok()
}

/// The records of a name, and of those that it stands for; none when the server does not tell.
pub(super) async fn records(server: SocketAddr, id: u16, name: Name, kind: RecordType) -> Option<Vec<Record>> {
    let mut question = Message::new(id, MessageType::Query, OpCode::Query);
    question.metadata.recursion_desired = true;
    question.add_query(Query::query(name, kind));
    let answer = Message::from_vec(&exchange(server, &question.to_vec().ok()?).await?).ok()?;
    let is_told = matches!(answer.metadata.response_code, ResponseCode::NoError | ResponseCode::NXDomain);
    (is_told && answer.metadata.id == id).then_some(answer.answers)
}
