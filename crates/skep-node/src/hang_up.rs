//! The end of the terminal.

use std::{fs, io};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Tells when the terminal of this process goes away.
#[derive(Debug)]
pub struct HangUp {
    /// None when whoever has started this process wants it to outlive its terminal, as nohup does.
    signal: Option<Signal>,
}

impl HangUp {
    pub fn new() -> io::Result<Self> {
        let kind = SignalKind::hangup();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let is_ignored = ignored(&status) & (1 << (kind.as_raw_value() - 1)) != 0;
        Ok(Self { signal: if is_ignored { None } else { Some(signal(kind)?) } })
    }

    /// Ready once for every time.
    pub async fn received(&mut self) {
        match &mut self.signal {
            Some(signal) => _ = signal.recv().await,
            None => std::future::pending().await,
        }
    }
}

/// The signals that a process ignores, a bit each.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        assert_eq!(ignored("Name:\tskep\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(ignored(""), 0);
    }
}
