//! A process for each session.

use std::time::Instant;

use snapbox::cmd::cargo_bin;

use super::asking::{self, Call};
use super::{ANY, LIMIT, Serving};

#[test]
fn each_session_has_a_process_that_can_ask_its_client() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let flags = ["--processes", "2", "--", skep, "demo", "echo", "--transport", "stdio"];
    let proxy = Serving::start(&[&ANY[..], &flags].concat());
    let begun = Instant::now();
    let sessions = [(); 2].map(|()| {
        loop {
            if let Some(session) = asking::begin(&proxy.address) {
                break session;
            }
            assert!(begun.elapsed() < LIMIT, "it is never ready");
        }
    });
    let calls = sessions.each_ref().map(|session| Call::begin(&proxy.address, session));
    for call in calls.into_iter().rev() {
        call.finish();
    }
}
