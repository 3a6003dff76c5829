//! `kubectl exec`

use std::process::Stdio;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;

use crate::cluster::{Cluster, Said};

crate::trials![
    streams_and_exit_codes,
    input_to_its_end,
    much_output,
    what_cannot_run,
    a_terminal,
    without_web_sockets,
    a_terminal_without_web_sockets,
];

/// Makes kubectl speak as it did before it knew WebSockets.
pub const WEB_SOCKETS: &str = "KUBECTL_REMOTE_COMMAND_WEBSOCKETS";
/// Looks at its terminal. The size comes in a message of its own, which the program can be ahead of.
const LOOK: &str = "tty; while [ \"$(stty size)\" = '0 0' ]; do sleep 0.1; done; stty size; echo $TERM";
const STAY: &str = "trap 'exit 0' TERM; while :; do sleep 0.2; done";

async fn streams_and_exit_codes(cluster: Arc<Cluster>) {
    cluster.script("exits", STAY).await;
    let said = cluster.run(&["exec", "exits", "--", "sh", "-c", "echo out; echo 'err ×' >&2; exit 3"]).await;
    let err = "err ×\ncommand terminated with exit code 3\n".to_owned();
    assert_eq!(said, Said { out: "out\n".to_owned(), err, code: 3 });
    let said = cluster.run(&["exec", "exits", "--", "printf", "%s|", "a b", "c&d", "ü"]).await;
    assert_eq!((said.out.as_str(), said.code), ("a b|c&d|ü|", 0));
}

async fn input_to_its_end(cluster: Arc<Cluster>) {
    cluster.script("reads", STAY).await;
    let mut command = cluster.kubectl(&["exec", "-i", "reads", "--", "sort"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"bee\nant\n").await.unwrap();
    drop(stdin);
    let said = Said::of(&child.wait_with_output().await.unwrap());
    assert_eq!((said.out.as_str(), said.code), ("ant\nbee\n", 0), "{said:?}");
}

async fn much_output(cluster: Arc<Cluster>) {
    cluster.script("prints", STAY).await;
    let said = cluster.run(&["exec", "prints", "--", "sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x"]).await;
    assert_eq!((said.out.len(), said.code), (5_000_000, 0), "{}", said.err);
}

async fn what_cannot_run(cluster: Arc<Cluster>) {
    cluster.script("lacks", STAY).await;
    let said = cluster.run(&["exec", "lacks", "--", "no-such-program"]).await;
    assert_eq!(said.code, 1);
    let text = "exec: \"no-such-program\": executable file not found in $PATH";
    assert!(said.err.contains("Internal error occurred") && said.err.contains(text), "{said:?}");
    cluster.script("over", "true").await;
    let mut said = cluster.run(&["exec", "over", "--", "true"]).await;
    // A container that ends takes along what was started in it.
    while matches!(said.code, 0 | 137) {
        said = cluster.run(&["exec", "over", "--", "true"]).await;
    }
    assert!(said.err.contains("container not found (\"main\")") || said.err.contains("completed pod"), "{said:?}");
}

async fn a_terminal(cluster: Arc<Cluster>) {
    cluster.script("terminal", STAY).await;
    in_a_terminal(cluster.kubectl(&["exec", "-it", "terminal", "--", "sh", "-c", LOOK])).await;
}

async fn a_terminal_without_web_sockets(cluster: Arc<Cluster>) {
    cluster.script("old-terminal", STAY).await;
    let mut command = cluster.kubectl(&["exec", "-it", "old-terminal", "--", "sh", "-c", LOOK]);
    command.env(WEB_SOCKETS, "false");
    in_a_terminal(command).await;
}

async fn without_web_sockets(cluster: Arc<Cluster>) {
    cluster.script("old", STAY).await;
    let script = "sort; echo oh >&2; exit 3";
    let mut command = cluster.kubectl(&["exec", "-i", "old", "--", "sh", "-c", script]);
    let mut child = command.env(WEB_SOCKETS, "false").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"bee\nant\n").await.unwrap();
    drop(stdin);
    let said = Said::of(&child.wait_with_output().await.unwrap());
    let err = "oh\ncommand terminated with exit code 3\n".to_owned();
    assert_eq!(said, Said { out: "ant\nbee\n".to_owned(), err, code: 3 });
    let much = "head -c 5000000 /dev/zero | tr '\\0' x";
    let output = cluster.kubectl(&["exec", "old", "--", "sh", "-c", much]).env(WEB_SOCKETS, "false").output().await;
    let said = Said::of(&output.unwrap());
    assert_eq!((said.out.len(), said.code), (5_000_000, 0), "{}", said.err);
}

async fn in_a_terminal(mut command: tokio::process::Command) {
    let (near, far) = terminal();
    let streams = [far.try_clone().unwrap(), far.try_clone().unwrap(), far];
    let [stdin, stdout, stderr] = streams.map(Stdio::from);
    let status = command.stdin(stdin).stdout(stdout).stderr(stderr).status().await.unwrap();
    drop(command);
    assert!(status.success());
    let text = everything(near).await;
    assert_eq!(text.replace('\r', "").lines().collect::<Vec<_>>(), ["/dev/pts/0", "33 99", "xterm"]);
}

/// A terminal of this machine, with a size of its own.
fn terminal() -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let size = rustix::termios::Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&near, size).unwrap();
    let name = ptsname(&near, Vec::new()).unwrap();
    let far = std::fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (near.into(), far)
}

async fn everything(mut near: std::fs::File) -> String {
    use std::io::Read as _;
    let read = move || {
        let mut text = Vec::new();
        // A terminal ends with an error.
        let _ = near.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}
