//! What a process inside the namespaces gets from the machine outside.

use std::io::Write as _;
use std::net::SocketAddr;

use skep_conformance::skip::skip;
use skep_node::broker::{Broker, BrokerError, HostCommand};
use skep_node::container::{Exit, StartError};
use tokio::io::AsyncReadExt as _;

use crate::role::Role;
use crate::support::{eventually, strings};

crate::trials![
    a_listener_is_on_the_machine_outside,
    a_port_in_use_is_told_from_others,
    only_the_loopback_can_be_listened_on,
    the_machine_outside_is_dialled,
    the_internet_takes_pasta,
    a_command_runs_outside,
    a_command_that_is_dropped_is_killed,
    a_command_that_cannot_start_says_why,
];

/// The broker of this process, of which there is one.
async fn broker() -> Broker {
    static BROKER: tokio::sync::OnceCell<Broker> = tokio::sync::OnceCell::const_new();
    BROKER.get_or_init(|| async { Broker::connect().unwrap() }).await.clone()
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn shell(text: &str) -> HostCommand {
    HostCommand { argv: strings(&["sh", "-c", text]), ..HostCommand::default() }
}

async fn a_listener_is_on_the_machine_outside() {
    let listener = broker().await.listen(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"from inside").unwrap());
    let program = std::env::current_exe().unwrap();
    let command = HostCommand {
        argv: vec![program.to_str().unwrap().to_owned(), address.to_string()],
        env: vec![Role::Connect.env()],
        working_dir: None,
    };
    let mut process = broker().await.run(&command).await.unwrap();
    let mut text = String::new();
    process.take_stdout().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "from inside");
    assert!(std::net::TcpStream::connect(address).is_err(), "the loopback inside is another one");
}

async fn a_port_in_use_is_told_from_others() {
    // A port that was given back may be somebody else's at once.
    for _ in 0..10 {
        let listener = broker().await.listen(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let error = broker().await.listen(address).await.unwrap_err();
        assert!(matches!(error, BrokerError::AddressInUse(told) if told == address));
        assert_eq!(error.to_string(), format!("port {} of 127.0.0.1 is in use by another program", address.port()));
        drop(listener);
        if broker().await.listen(address).await.is_ok() {
            return;
        }
    }
    panic!("no port can be used again");
}

async fn only_the_loopback_can_be_listened_on() {
    let error = broker().await.listen("0.0.0.0:0".parse().unwrap()).await.unwrap_err();
    assert!(matches!(error, BrokerError::NotLoopback(_)));
}

async fn a_command_runs_outside() {
    let mut command = shell("readlink /proc/self/ns/net; echo $WORD; pwd; exit 3");
    command.env = vec![("WORD".into(), "given".into())];
    command.working_dir = Some("/usr".into());
    let mut process = broker().await.run(&command).await.unwrap();
    let mut text = String::new();
    process.take_stdout().unwrap().read_to_string(&mut text).await.unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1..], ["given", "/usr"]);
    assert_ne!(lines[0], std::fs::read_link("/proc/self/ns/net").unwrap().to_str().unwrap());
    assert_eq!(process.wait().await.unwrap(), Exit { code: 3, signal: None });
    assert_eq!(process.wait().await.unwrap().code, 3);
}

async fn a_command_that_is_dropped_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beat");
    let beat = format!("(setsid sh -c 'while :; do date +%s%N > {}; sleep 0.02; done' &); sleep 1000", file.display());
    let process = broker().await.run(&shell(&beat)).await.unwrap();
    eventually("the start of a command", || file.exists()).await;
    drop(process);
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    let mut last = String::from("nothing");
    eventually("the end of a command that was dropped", || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::mem::replace(&mut last, read()) == last
    })
    .await;
}

async fn a_command_that_cannot_start_says_why() {
    let command = HostCommand { argv: strings(&["no-such-program"]), ..HostCommand::default() };
    let error = broker().await.run(&command).await.unwrap_err();
    assert!(matches!(error, BrokerError::Command(StartError::ProgramNotFound { .. })), "{error}");
}

async fn the_machine_outside_is_dialled() {
    let listener = broker().await.listen_for_others(any_port()).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"from inside").unwrap());
    let connection = broker().await.dial("localhost", port).await.unwrap();
    connection.set_nonblocking(true).unwrap();
    let mut text = String::new();
    tokio::net::TcpStream::from_std(connection).unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "from inside");
    served.join().unwrap();
    let error = broker().await.dial("127.0.0.1", port).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot connect to 127.0.0.1:{port}: ")), "{error}");
}

/// Where it is not installed, or cannot do it, that is told.
/// Where it is not installed, this shows that it is said so; where it is, that a way out comes and goes with it. What goes
/// over that way is not tried: tests leave this machine alone.
async fn the_internet_takes_pasta() {
    let is_installed = skep_node::image::find_program("pasta").is_some();
    let has_way_out = || std::fs::read_to_string("/proc/self/net/dev").unwrap().contains("internet0:");
    match broker().await.internet().await {
        Ok(process) => {
            assert!(is_installed && has_way_out());
            drop(process);
            eventually("the end of the way out", || !has_way_out()).await;
        }
        Err(error) => {
            let told = error.to_string();
            let reason = if is_installed {
                "pasta cannot connect the namespaces: "
            } else {
                "exec: \"pasta\": executable file not found in $PATH"
            };
            assert!(told.starts_with(reason), "{told}");
            assert!(!has_way_out());
            skip("the_internet_takes_pasta", &told);
        }
    }
}
