//! A connection inside a WebSocket: the messages, one after the other, are its bytes.

use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_tungstenite::tungstenite::Message;

use super::upgrade::Socket;

const BUFFER: usize = 64 * 1024;

/// The connection, and what carries its bytes: it ends with either side.
pub(super) fn through(socket: Socket) -> (DuplexStream, impl Future<Output = ()> + Send) {
    let (near, far) = tokio::io::duplex(BUFFER);
    (near, carry(socket, far))
}

async fn carry(socket: Socket, far: DuplexStream) {
    let (mut mouth, mut ear) = socket.split();
    let (mut source, mut sink) = tokio::io::split(far);
    let out = async {
        let mut buffer = vec![0; BUFFER];
        while let Ok(length @ 1..) = source.read(&mut buffer).await {
            if mouth.send(Message::Binary(buffer[..length].to_vec().into())).await.is_err() {
                return;
            }
        }
        // Nobody may be there any more to hear it.
        let _ = mouth.send(Message::Close(None)).await;
    };
    let into = async {
        while let Some(Ok(message)) = ear.next().await {
            let bytes = match message {
                Message::Binary(bytes) => bytes,
                Message::Close(_) | Message::Text(_) => break,
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            if sink.write_all(&bytes).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = out => {}
        () = into => {}
    }
}
