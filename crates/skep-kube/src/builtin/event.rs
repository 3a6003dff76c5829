//! Events have two faces, `v1` and `events.k8s.io/v1`, on one store. The core face is the one that is stored.

use serde_json::Value;

/// The member of `v1` and its name in `events.k8s.io/v1`. Members with one name are not listed.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// An event of `events.k8s.io/v1` as one of `v1`.
pub fn event_to_core(event: &mut Value) {
    rename(event, "v1", |name| NAMES.iter().find(|(_, new)| *new == name).map(|(core, _)| *core));
}

/// An event of `v1` as one of `events.k8s.io/v1`.
pub fn event_from_core(event: &mut Value) {
    rename(event, "events.k8s.io/v1", |name| NAMES.iter().find(|(core, _)| *core == name).map(|(_, new)| *new));
}

fn rename(event: &mut Value, api_version: &str, other_name: impl Fn(&str) -> Option<&'static str>) {
    let Some(members) = event.as_object_mut() else { return };
    let renamed = std::mem::take(members).into_iter().map(|(name, value)| {
        let name = other_name(&name).map_or(name, str::to_owned);
        (name, value)
    });
    members.extend(renamed);
    members.insert("apiVersion".to_owned(), api_version.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_faces_say_the_same() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {}, "involvedObject": { "kind": "Pod" }, "message": "text",
            "reason": "r", "source": {}, "count": 2, "series": { "count": 1 }, "reportingComponent": "me",
        });
        let mut event = core.clone();
        event_from_core(&mut event);
        assert_eq!(event["regarding"]["kind"], "Pod");
        assert_eq!(event["note"], "text");
        assert_eq!(event["deprecatedCount"], 2);
        assert_eq!(event["reportingController"], "me");
        event_to_core(&mut event);
        assert_eq!(event, core);
    }
}
