//! Time in rounds. Servers tell times to the second, and two servers never write at the same moment; but no second
//! belongs to two rounds, so that in rounds they must tell the same.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::pair::Both;

/// The seconds in which the rounds began.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Vec<i64>);

impl Rounds {
    /// Begins a round in a second of its own.
    pub(crate) async fn begin(&mut self) {
        let before = second();
        while second() <= before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.0.push(second());
    }

    /// The round in which a server has written a time.
    fn of(&self, time: &str) -> usize {
        let second = chrono::DateTime::parse_from_rfc3339(time).unwrap().timestamp();
        self.0.partition_point(|begun| *begun <= second)
    }

    /// Replaces what the servers make up by what must be the same: times by rounds, and of identities nothing is left.
    pub(crate) fn comparable(&self, mut objects: Both<Value>) -> Both<Value> {
        let is_torn = self.is_torn(&objects.ours) || self.is_torn(&objects.theirs);
        for object in [&mut objects.ours, &mut objects.theirs] {
            let Some(metadata) = object["metadata"].as_object_mut() else { continue };
            metadata.remove("uid");
            metadata.remove("resourceVersion");
            if let Some(time) = metadata.get_mut("creationTimestamp") {
                *time = self.of(time.as_str().unwrap()).into();
            }
            let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) else { continue };
            for time in entries.iter_mut().filter_map(|entry| entry.get_mut("time")) {
                *time = self.of(time.as_str().unwrap()).into();
            }
            if is_torn {
                entries.sort_by_key(ToString::to_string);
            }
        }
        objects
    }

    /// Whether a second ended between two writes of one round. The order of entries depends on it.
    fn is_torn(&self, object: &Value) -> bool {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let times: Vec<&str> = entries.filter_map(|entry| entry["time"].as_str()).collect();
        times.iter().any(|one| times.iter().any(|other| one != other && self.of(one) == self.of(other)))
    }
}

fn second() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed()
}
