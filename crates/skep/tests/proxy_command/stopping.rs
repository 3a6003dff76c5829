//! How a proxy ends that is asked to stop while it has something to do.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use snapbox::cmd::cargo_bin;

use super::{ANY, LIMIT, Serving, message};

/// A proxy before a command of its own, with so many calls under way that take a minute.
fn busy(calls: u32) -> Serving {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let proxy = Serving::start(&[&ANY[..], &["--", skep, "demo", "echo"]].concat());
    let session = proxy.session();
    for id in 0..calls {
        let slow = message(id + 2, "tools/call", &json!({"name": "slow", "arguments": {"seconds": 60}}));
        // The answer begins when the server has the call.
        let answer = proxy.tell_in(&session, &slow);
        assert_eq!(answer.status, 200);
        std::mem::forget(answer);
    }
    proxy
}

#[test]
fn a_person_is_told_what_is_waited_for_and_need_not_wait() {
    for (calls, words) in [(1, "waiting for 1 call,"), (2, "waiting for 2 calls,")] {
        let mut proxy = busy(calls);
        let server = children(&proxy);
        assert_eq!(server.len(), 1);
        let begun = Instant::now();
        proxy.signal("-INT");
        let said = proxy.await_words("Ctrl-C again ends it now");
        assert!(said.contains(words), "{said}");
        assert!(proxy.child.try_wait().unwrap().is_none(), "it waits");
        proxy.signal("-INT");
        assert_eq!(proxy.end(), Some(0));
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        let gone = || !std::path::Path::new(&format!("/proc/{}/cmdline", server[0])).exists();
        while !gone() {
            assert!(begun.elapsed() < Duration::from_secs(15), "its server is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn nothing_is_said_where_nothing_is_waited_for() {
    let mut proxy = busy(0);
    proxy.signal("-INT");
    assert_eq!(proxy.end(), Some(0));
    assert!(!proxy.said.lock().unwrap().contains("stopping"));
}

#[test]
fn a_command_ends_with_its_proxy_however_that_ends() {
    for signal in ["-KILL", "-USR1"] {
        // It does not care about the end of its input.
        let mut proxy = Serving::start(&[&ANY[..], &["--", "sleep", "600"]].concat());
        let begun = Instant::now();
        let is_sleep =
            |id: &String| std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line == b"sleep\x00600\0");
        let server = loop {
            if let [id] = &children(&proxy)[..]
                && is_sleep(id)
            {
                break id.clone();
            }
            assert!(begun.elapsed() < LIMIT, "it is not started");
            std::thread::sleep(Duration::from_millis(20));
        };
        proxy.signal(signal);
        assert_eq!(proxy.end(), None, "{signal}");
        let begun = Instant::now();
        while is_sleep(&server) {
            assert!(begun.elapsed() < Duration::from_secs(15), "{signal}: its server is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The processes that a proxy has started.
fn children(proxy: &Serving) -> Vec<String> {
    let output = Command::new("ps").args(["-o", "pid=", "--ppid", &proxy.child.id().to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}
