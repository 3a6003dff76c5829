//! A TCP probe: does anybody accept the connection?

use std::time::Duration;

use tokio::net::TcpStream;

pub(super) async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let failed = |error: std::io::Error| format!("dial tcp {host}:{port}: {error}");
    TcpStream::connect((host.trim_matches(['[', ']']), port)).await.map_err(failed)
}

pub(super) async fn ask(host: &str, port: u16, timeout: Duration) -> Result<(), String> {
    match tokio::time::timeout(timeout, connect(host, port)).await {
        Ok(answer) => answer.map(drop),
        Err(_) => Err(format!("dial tcp {host}:{port}: no answer within {} s", timeout.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn somebody_listens_or_not() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(ask("127.0.0.1", port, Duration::from_secs(1)).await, Ok(()));
        drop(listener);
        let error = ask("127.0.0.1", port, Duration::from_secs(1)).await.unwrap_err();
        assert!(error.starts_with(&format!("dial tcp 127.0.0.1:{port}: ")), "{error}");
    }
}
