use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use tempfile::TempDir;

use super::*;

const LIMITS: LogLimits = LogLimits { file_size: 1_000, files: 3 };

fn log(folder: &TempDir) -> Log {
    Log::create(&path(folder.path(), "c", 0), LIMITS).unwrap()
}

fn say(log: &Log, text: &str) {
    log.take(Source::Output, &mut Vec::new(), text.as_bytes()).unwrap();
}

async fn all(path: &Path, query: LogQuery) -> String {
    let pieces: Vec<_> = read(path.to_owned(), query, None).collect().await;
    String::from_utf8(pieces.into_iter().flat_map(|piece| piece.unwrap().to_vec()).collect()).unwrap()
}

#[tokio::test]
async fn lines_come_back() {
    let folder = TempDir::new().unwrap();
    let log = log(&folder);
    let mut pending = Vec::new();
    log.take(Source::Output, &mut pending, b"one\ntw").unwrap();
    log.take(Source::Output, &mut pending, b"o\nthr").unwrap();
    assert_eq!(all(log.path(), LogQuery::default()).await, "one\ntwo\n");
    log.finish(Source::Output, &mut pending).unwrap();
    assert_eq!(all(log.path(), LogQuery::default()).await, "one\ntwo\nthr");
    assert_eq!(all(log.path(), LogQuery { tail: Some(2), ..LogQuery::default() }).await, "two\nthr");
    assert_eq!(all(log.path(), LogQuery { tail: Some(0), ..LogQuery::default() }).await, "");
    assert_eq!(all(log.path(), LogQuery { limit: Some(5), ..LogQuery::default() }).await, "one\nt");
    let stamped = all(log.path(), LogQuery { timestamps: true, tail: Some(3), ..LogQuery::default() }).await;
    let (time, text) = stamped.lines().next().unwrap().split_once(' ').unwrap();
    assert_eq!(text, "one");
    let later = time.parse::<k8s_openapi::jiff::Timestamp>().unwrap() + Duration::from_mins(1);
    assert_eq!(all(log.path(), LogQuery { since: Some(later), ..LogQuery::default() }).await, "");
}

#[tokio::test]
async fn long_lines_are_not_torn() {
    let folder = TempDir::new().unwrap();
    let log = Log::create(&path(folder.path(), "c", 0), LogLimits::default()).unwrap();
    let endless = "x".repeat(100_000);
    let mut pending = Vec::new();
    for chunk in format!("{endless}\nend\n").as_bytes().chunks(7_000) {
        log.take(Source::Error, &mut pending, chunk).unwrap();
        assert!(pending.len() < 2 * 16 * 1024);
    }
    assert_eq!(all(log.path(), LogQuery::default()).await, format!("{endless}\nend\n"));
}

#[tokio::test]
async fn old_files_go() {
    let folder = TempDir::new().unwrap();
    let log = log(&folder);
    for number in 0..200 {
        say(&log, &format!("line {number:04}\n"));
    }
    let files = std::fs::read_dir(folder.path().join("c")).unwrap().count();
    assert_eq!(files, 3);
    let text = all(log.path(), LogQuery::default()).await;
    let numbers: Vec<u32> = text.lines().map(|line| line[5..].parse().unwrap()).collect();
    assert_eq!(numbers.last(), Some(&199));
    assert!(numbers.len() < 100, "{}", numbers.len());
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    let tail = all(log.path(), LogQuery { tail: Some(30), ..LogQuery::default() }).await;
    assert_eq!(tail.lines().count(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_to_its_end() {
    let folder = TempDir::new().unwrap();
    let log = std::sync::Arc::new(log(&folder));
    say(&log, "before\n");
    let stream = read(log.path().to_owned(), LogQuery::default(), Some(log.follow()));
    let writer = {
        let log = log.clone();
        tokio::spawn(async move {
            for number in 0..60 {
                say(&log, &format!("line {number}\n"));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            log.close();
        })
    };
    let pieces = tokio::time::timeout(Duration::from_secs(20), stream.collect::<Vec<_>>()).await.unwrap();
    writer.await.unwrap();
    let text = String::from_utf8(pieces.into_iter().flat_map(|piece| piece.unwrap().to_vec()).collect()).unwrap();
    let expected: Vec<String> = (0..60).map(|number| format!("line {number}")).collect();
    assert_eq!(text, format!("before\n{}\n", expected.join("\n")));
}

#[test]
fn this_run_and_the_one_before_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let container = folder.path().join("c");
    std::fs::create_dir(&container).unwrap();
    let files = ["7.log", "8.log", "8.log.1", "9.log", "9.log.1", "10.log", "note"];
    for name in files {
        std::fs::write(container.join(name), "").unwrap();
    }
    super::forget_older(folder.path(), "c", 10).unwrap();
    let mut left: Vec<_> =
        std::fs::read_dir(&container).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["10.log", "9.log", "9.log.1", "note"]);
}
