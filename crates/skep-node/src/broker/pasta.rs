//! The Internet for the namespaces, by `pasta`: it carries what leaves them over sockets of an ordinary user.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::{BrokerError, HostCommand, HostProcess};

/// Where the name servers of the machine are, seen from inside: an address that no network routes.
pub(crate) const NAMES: [u8; 4] = [169, 254, 1, 53];
/// What the way out is called inside.
const INTERFACE: &str = "internet0";

/// How long it may take, and how often the kernel is asked whether it has come about.
const LIMIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);
/// How much of its complaints is read.
const COMPLAINTS: u64 = 4_096;

/// The command that connects the namespaces of a process, until it is killed. Nothing of the machine can be reached that
/// way but what others can reach, too: neither its loopback nor ports of the namespaces from outside.
pub(super) fn command(process: i32, is_root: bool) -> HostCommand {
    let [a, b, c, d] = NAMES;
    let names = format!("{a}.{b}.{c}.{d}");
    let mut argv: Vec<String> = ["pasta", "--foreground", "--quiet", "--config-net", "--ipv4-only", "--no-map-gw"]
        .into_iter()
        .chain(["--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"])
        .chain(["--ns-ifname", INTERFACE, "--dns-forward", &names])
        .map(str::to_owned)
        .collect();
    if is_root {
        // It would become somebody who may not enter the namespaces.
        argv.extend(["--runas".to_owned(), "0".to_owned()]);
    }
    argv.push(process.to_string());
    HostCommand { argv, ..HostCommand::default() }
}

/// Waits until the way out is there, or says why it does not come.
pub(super) async fn connected(process: &mut HostProcess) -> Result<(), BrokerError> {
    let complaints = process.take_stderr();
    let look = async {
        while !has_way_out() {
            tokio::time::sleep(LOOK).await;
        }
    };
    let end = async {
        let mut text = Vec::new();
        if let Some(complaints) = complaints {
            // What cannot be read is not told.
            let _ = complaints.take(COMPLAINTS).read_to_end(&mut text).await;
        }
        let ended = process.wait().await;
        let text = String::from_utf8_lossy(&text).into_owned();
        let last = text.lines().rfind(|line| !line.trim().is_empty() && !line.contains("syslog"));
        match ended {
            Ok(exit) => last.map_or_else(|| format!("it ended with {}", exit.code), |line| line.trim().to_owned()),
            Err(error) => error.to_string(),
        }
    };
    tokio::select! {
        () = look => Ok(()),
        why = end => Err(BrokerError::Internet(why)),
        () = tokio::time::sleep(LIMIT) => {
            Err(BrokerError::Internet(format!("no way out within {} s", LIMIT.as_secs())))
        }
    }
}

/// Whether this process has it.
fn has_way_out() -> bool {
    let links = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    links.lines().any(|line| line.trim_start().starts_with(INTERFACE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_way_out_is_open() {
        let line = command(77, false).argv.join(" ");
        assert!(line.starts_with("pasta --foreground"), "{line}");
        for flag in ["--no-map-gw", "--tcp-ports none", "--udp-ports none", "--tcp-ns none", "--udp-ns none"] {
            assert!(line.contains(flag), "{flag} in {line}");
        }
        assert!(line.ends_with("--dns-forward 169.254.1.53 77"), "{line}");
        assert!(command(77, true).argv.join(" ").ends_with("--runas 0 77"));
    }
}
