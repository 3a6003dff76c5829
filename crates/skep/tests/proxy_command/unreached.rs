//! What the log of a proxy tells about a server that cannot be asked, or does not finish what it says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::http::Request;
use super::{ANY, Serving, message};

fn hello() -> Request {
    Request::post(&message(1, "initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}})))
}

#[test]
fn a_server_that_cannot_be_reached_is_named_without_its_secrets() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}/mcp?key=hunter");
    let proxy = Serving::start(&[&ANY[..], &["--url", &url]].concat());
    let mut answer = hello().send(&proxy.address);
    // 30 §3.2 wants no body.
    assert_eq!((answer.status, answer.text().as_str()), (502, ""));
    let said = proxy.await_words("the MCP server cannot be reached");
    let line = said.lines().find(|line| line.contains("the MCP server cannot be reached")).unwrap();
    assert!(line.contains("WARN") && line.contains(&format!("http://{nobody}/mcp")), "{line}");
    assert!(!said.contains("hunter"), "{said}");
}

/// Reads a request to its end.
fn read_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let length = reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty());
    let length = length.filter_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let length = length.last().unwrap_or_default();
    reader.read_exact(&mut vec![0; length]).unwrap();
}

/// A server that ends connections without an answer, until it is there.
fn silent(is_there: &Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, is_there) = (listener.local_addr().unwrap().to_string(), Arc::clone(is_there));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            read_request(&stream);
            if is_there.load(Ordering::SeqCst) {
                let agreed = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x"}});
                let answer = json!({"jsonrpc": "2.0", "id": 1, "result": agreed}).to_string();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
                let head = format!("{head}Content-Length: {}\r\n\r\n", answer.len());
                stream.write_all((head + &answer).as_bytes()).unwrap();
            }
        }
    });
    address
}

#[test]
fn a_server_that_is_away_is_told_once_in_a_while_and_not_for_each_request() {
    let is_there = Arc::<AtomicBool>::default();
    let server = silent(&is_there);
    let url = format!("http://{server}/mcp?key=hunter");
    let proxy = Serving::start_with(&[&ANY[..], &["--url", &url]].concat(), &[("RUST_LOG", "info")]);
    for _ in 0..5 {
        assert_eq!(hello().send(&proxy.address).status, 502);
    }
    is_there.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        assert_eq!(hello().send(&proxy.address).status, 200);
    }
    let said = proxy.await_words("the MCP server answers again");
    let told: Vec<&str> = said.lines().filter(|line| line.contains("the MCP server has not answered")).collect();
    assert!(told.len() == 1 && told[0].contains("WARN") && told[0].contains("times=1"), "{said}");
    assert!(told[0].contains(&server) && !told[0].contains("hunter"), "{said}");
}

/// A server whose answers are longer than what it sends.
fn breaking_off() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            read_request(&stream);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n";
            stream.write_all(format!("{head}{{").as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn answers_that_break_off_are_told_once_in_a_while() {
    let server = breaking_off();
    let proxy = Serving::start(&[&ANY[..], &["--url", &format!("http://{server}/mcp?key=hunter")]].concat());
    for _ in 0..3 {
        let mut answer = hello().send(&proxy.address);
        assert_eq!((answer.status, answer.json()["id"].clone()), (502, json!(1)));
    }
    let said = proxy.await_words("the answer of the MCP server broke off");
    let told: Vec<&str> = said.lines().filter(|line| line.contains("broke off")).collect();
    assert!(told.len() == 1 && told[0].contains("WARN") && told[0].contains(&server), "{said}");
    assert!(!said.contains("hunter"), "{said}");
}
