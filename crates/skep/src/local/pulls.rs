//! What is being pulled: pods that wait for a package would look dead otherwise.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};

/// Calls `tell` with every step of every pull from now on, as the node records it. Never returns.
pub(crate) async fn follow(client: Client, tell: impl Fn(&str)) {
    // Times of events are whole seconds.
    let begun = Timestamp::now().as_second();
    let events = watcher(Api::<Event>::all(client), watcher::Config::default()).default_backoff().applied_objects();
    let mut events = events.boxed();
    while let Some(event) = events.next().await {
        let Ok(event) = event else { continue };
        let is_new = event.last_timestamp.as_ref().is_some_and(|time| time.0.as_second() >= begun);
        if is_new && let Some(line) = line(&event) {
            tell(&line);
        }
    }
}

/// What to say about an event, if it is about a pull.
fn line(event: &Event) -> Option<String> {
    let message = event.message.as_deref()?;
    let is_pull = match event.reason.as_deref()? {
        "Pulling" => true,
        "Pulled" => message.starts_with("Successfully"),
        "Failed" => message.starts_with("Failed to pull"),
        _ => false,
    };
    let pod = event.involved_object.name.as_deref().unwrap_or_default();
    is_pull.then(|| format!("{pod}: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_pulls_are_told() {
        let told = |reason: &str, message: &str| {
            let event = json!({"metadata": {}, "reason": reason, "message": message, "involvedObject": {"name": "p"}});
            line(&serde_json::from_value(event).unwrap())
        };
        assert_eq!(told("Pulling", "Pulling image \"a\"").unwrap(), "p: Pulling image \"a\"");
        assert!(told("Pulled", "Successfully pulled image \"a\" in 5ms").is_some());
        assert_eq!(told("Pulled", "Container image \"a\" already present on machine"), None);
        assert!(told("Failed", "Failed to pull image \"a\": no").is_some());
        assert_eq!(told("Failed", "Error: ErrImagePull"), None);
        assert_eq!(told("Started", "Container started: c"), None);
    }
}
