//! Events have two faces, `v1` and `events.k8s.io/v1`, on one store. The core face is the one that is stored.

use serde_json::Value;

use super::{canonical, find};

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
    turn(event, "", |name| NAMES.iter().find(|(_, new)| *new == name).map(|(core, _)| *core));
}

/// An event of `v1` as one of `events.k8s.io/v1`.
pub fn event_from_core(event: &mut Value) {
    turn(event, "events.k8s.io", |name| NAMES.iter().find(|(core, _)| *core == name).map(|(_, new)| *new));
}

/// Gives members their other names, and those without a value the form that they have on that face.
fn turn(event: &mut Value, group: &str, other_name: impl Fn(&str) -> Option<&'static str>) {
    let Some(members) = event.as_object_mut() else { return };
    let renamed = std::mem::take(members).into_iter().map(|(name, value)| {
        let name = other_name(&name).map_or(name, str::to_owned);
        (name, value)
    });
    members.extend(renamed);
    if let Some(kind) = find(group, "v1", "Event") {
        members.insert("apiVersion".to_owned(), kind.api_version().into());
        canonical(kind, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_faces_say_the_same() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {}, "involvedObject": { "kind": "Pod" }, "message": "text",
            "reason": "r", "source": {}, "count": 2, "series": { "count": 1, "lastObservedTime": null },
            "reportingComponent": "me", "reportingInstance": "", "eventTime": null, "firstTimestamp": null,
            "lastTimestamp": null,
        });
        let mut event = core.clone();
        event_from_core(&mut event);
        assert_eq!(event["regarding"]["kind"], "Pod");
        assert_eq!(event["note"], "text");
        assert_eq!(event["deprecatedCount"], 2);
        assert_eq!(event["reportingController"], "me");
        assert_eq!(event.get("reportingInstance"), None);
        event_to_core(&mut event);
        assert_eq!(event, core);
    }
}
