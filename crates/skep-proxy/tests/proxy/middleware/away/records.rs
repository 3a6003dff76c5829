//! Places that take no records. Nobody waits for them, and nobody is refused because of them.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use skep_proxy::middleware::{Audit, AuditSettings, Authentication, Step};

use super::super::{Guarded, audit, with_tools};
use crate::http::{Request, request};

async fn recording(settings: AuditSettings) -> Guarded {
    let steps =
        vec![Step::Audit(Audit::new(settings).unwrap()), Step::Authenticate(Authentication::Anonymous), Step::Parse];
    Guarded::new(steps, with_tools).await
}

/// Calls a tool with so much that records do not fit anywhere for long.
async fn serves(guarded: &Guarded) {
    let params = json!({"name": "feed", "arguments": {"x": "x".repeat(16 << 10)}});
    let mut answer = guarded.send(Request::post(&request(1, "tools/call", &params))).await;
    assert_eq!((answer.status, answer.json().await["result"].clone()), (200, json!({"called": "feed"})));
}

#[test]
fn a_place_that_is_not_there_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("missing").join("audit.log");
    let refused = Audit::new(AuditSettings { file: Some(file.clone()), ..AuditSettings::default() }).unwrap_err();
    let told = format!("logFile {} cannot be written: No such file or directory (os error 2)", file.display());
    assert_eq!(refused.to_string(), told);
}

#[tokio::test]
async fn a_disk_without_room_for_records_stops_nobody() {
    let guarded = recording(AuditSettings { file: Some("/dev/full".into()), ..AuditSettings::default() }).await;
    for _ in 0..3 {
        serves(&guarded).await;
    }
}

#[tokio::test]
async fn a_pipe_that_nobody_reads_stops_nobody_and_has_every_record_when_somebody_does() {
    const CALLS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { has_requests: true, data_bytes: 32 << 10, ..audit::settings(&folder) };
    let path = settings.file.clone().unwrap();
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    // Each end waits for the other one to be opened, unless somebody has both.
    let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let guarded = recording(settings).await;
    for _ in 0..CALLS {
        serves(&guarded).await;
    }
    let reader = BufReader::new(File::open(&path).unwrap());
    drop(both);
    let reading = tokio::task::spawn_blocking(move || {
        let lines = reader.lines().take(CALLS).map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        lines.filter(|record| record["target"]["name"] == "feed").count()
    });
    let read = tokio::time::timeout(crate::http::PATIENCE, reading).await.unwrap().unwrap();
    assert_eq!(read, CALLS);
    serves(&guarded).await;
}
