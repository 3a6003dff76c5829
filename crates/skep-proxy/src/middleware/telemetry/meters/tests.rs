//! Counting.

use super::super::series::{LABEL, SERIES};
use super::*;

fn call(tool: &str) -> Ended<'_> {
    let name = Some(Cow::Borrowed(tool));
    let operation = Operation { method: "tools/call".into(), subject: name.clone(), tool: name, prompt: None };
    Ended { verb: "POST".into(), status: 200, operation: Some(operation), version: None }
}

#[test]
fn requests_are_counted_whether_their_kind_is_known_or_finds_no_place() {
    let meters = Meters::new("server", "stdio");
    let long = "x".repeat(LABEL + 1);
    for _ in 0..3 {
        meters.ended(&call(&long), Duration::ZERO);
        assert!(meters.kinds.len() == 0 || meters.kinds.len() == SERIES, "long names are not kept");
        for number in 0..SERIES + 5 {
            meters.ended(&call(&number.to_string()), Duration::ZERO);
        }
    }
    assert_eq!(meters.kinds.len(), SERIES);
    let readings = meters.read();
    for metric in [&REQUESTS, &TOOL_CALLS] {
        let reading = readings.iter().find(|reading| reading.metric.name == metric.name).unwrap();
        let counts = reading.points.iter().map(|(_, point)| if let Point::Count(count) = point { *count } else { 0 });
        assert_eq!((counts.sum(), reading.points.len()), (3 * (SERIES as u64 + 6), SERIES), "{}", metric.name);
    }
}
