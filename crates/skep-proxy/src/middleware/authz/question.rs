//! What a message asks for, as far as somebody has to allow it. Decided by the body alone.

use std::borrow::Cow;
use std::collections::HashSet;

use skep_mcp::catalog::CatalogKind;
use skep_mcp::{Kind, Message, Param, json, method};

use crate::eras::listen::MOST_RESOURCES;
use crate::middleware::ambiguity::{fold, has_twins};

/// The resources that a listener names.
const WATCHED: &str = "resourceSubscriptions";

/// The things that callers are allowed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Feature {
    Tool,
    Prompt,
    Resource,
}

impl Feature {
    pub(super) const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// What is listed under it; templates are no things yet.
    pub(super) fn of(kind: CatalogKind) -> Option<Self> {
        match kind {
            CatalogKind::Tools => Some(Self::Tool),
            CatalogKind::Prompts => Some(Self::Prompt),
            CatalogKind::Resources => Some(Self::Resource),
            CatalogKind::Templates => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// What policies call that.
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::Tool => "call_tool",
            Self::Prompt => "get_prompt",
            Self::Resource => "read_resource",
        }
    }

    /// What is done with it.
    pub(super) fn operation(self) -> &'static str {
        match self {
            Self::Tool => "call",
            Self::Prompt => "get",
            Self::Resource => "read",
        }
    }
}

/// Whether somebody may do the one thing that is done with a tool, a prompt or a resource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question<'a> {
    pub(super) feature: Feature,
    /// The name or the address, exactly as it was given.
    pub(super) id: Cow<'a, str>,
    /// What the tool or prompt is given; each value as JSON. None when a list is looked at.
    pub(super) arguments: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Question<'a> {
    /// The question about something in a list.
    pub(super) fn about(feature: Feature, id: &'a str) -> Self {
        Self { feature, id: Cow::Borrowed(id), arguments: Vec::new() }
    }

    /// Nothing when the message does not say what it is about, or says it in two ways.
    fn read(feature: Feature, message: &'a Message) -> Option<Self> {
        let subject = if feature == Feature::Resource { Param::Uri } else { Param::Name };
        let arguments = match message.param(Param::Arguments) {
            Some(arguments) if feature != Feature::Resource && arguments != "null" => json::members(arguments).ok()?,
            _ => Vec::new(),
        };
        let is_clear = !has_twins(arguments.iter().map(|(name, _)| &**name));
        is_clear.then_some(())?;
        Some(Self { feature, id: message.param_text(subject)?, arguments })
    }

    /// The questions about all resources that a listener wants to watch, each once. Nothing when they cannot be told for
    /// sure, or are more than anybody may watch: each of them is work for whoever decides.
    fn watched(message: &Message) -> Option<Vec<Question<'static>>> {
        let text = message.as_str();
        let Some(wanted) = json::find(text, &["params", "notifications"]).ok()? else { return Some(Vec::new()) };
        let wanted = json::members(wanted.of(text)).ok()?;
        let is_meant = |(name, _): &&(Cow<'_, str>, &str)| fold(name) == WATCHED.to_ascii_lowercase();
        let mut uris = Vec::new();
        for (name, list) in wanted.iter().filter(is_meant) {
            (name == WATCHED).then_some(())?;
            uris = serde_json::from_str::<Option<Vec<String>>>(list).ok()?.unwrap_or_default();
        }
        (uris.len() <= MOST_RESOURCES).then_some(())?;
        let mut known = HashSet::new();
        uris.retain(|uri| known.insert(uri.clone()));
        let about = |uri| Question { feature: Feature::Resource, id: Cow::Owned(uri), arguments: Vec::new() };
        Some(uris.into_iter().map(about).collect())
    }
}

/// What has to happen to a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wish<'a> {
    /// Everybody may.
    Free,
    /// Everybody may, and sees what they may use.
    List(Feature),
    /// Somebody has to be asked about all of these.
    Ask(Vec<Question<'a>>),
    /// Nobody may.
    Refused,
    /// Nobody can tell for sure what it asks for, so that nobody may.
    Unclear,
}

impl<'a> Wish<'a> {
    /// What a message wishes. A method that is not known here is nobody's.
    pub(super) fn read(message: &'a Message) -> Self {
        let ask = |feature| Question::read(feature, message).map_or(Self::Unclear, |asked| Self::Ask(vec![asked]));
        match message.method() {
            _ if message.kind() == Kind::Response => Self::Free,
            method::TOOLS_CALL => ask(Feature::Tool),
            method::PROMPTS_GET => ask(Feature::Prompt),
            method::RESOURCES_READ | method::SUBSCRIBE | method::UNSUBSCRIBE => ask(Feature::Resource),
            method::LISTEN => Question::watched(message).map_or(Self::Unclear, Self::Ask),
            method::TOOLS_LIST => Self::List(Feature::Tool),
            method::PROMPTS_LIST => Self::List(Feature::Prompt),
            method::RESOURCES_LIST => Self::List(Feature::Resource),
            method if is_free(method) => Self::Free,
            _ => Self::Refused,
        }
    }
}

fn is_free(method: &str) -> bool {
    let is_changed = method::LISTS_CHANGED.contains(&method);
    is_changed
        || matches!(
            method,
            method::INITIALIZE
                | method::PING
                | method::DISCOVER
                | method::SET_LOG_LEVEL
                | method::TEMPLATES_LIST
                | method::LOG_MESSAGE
                | method::INITIALIZED
                | method::PROGRESS
                | method::CANCELLED
                | method::ROOTS_CHANGED
                | method::RESOURCE_UPDATED
                | "completion/complete"
                | "features/list"
                | "roots/list"
                | "notifications/tasks/status"
        )
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn message(text: &str) -> Message {
        Message::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn request(method: &str, params: &str) -> Message {
        message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#))
    }

    #[test]
    fn methods_are_free_asked_about_listed_or_refused() {
        for method in ["initialize", "server/discover", "completion/complete", "ping"] {
            assert_eq!(Wish::read(&request(method, "{}")), Wish::Free, "{method}");
        }
        for method in ["sampling/createMessage", "tasks/get", "tasks/result", "elicitation/create", "Tools/Call", ""] {
            assert_eq!(Wish::read(&request(method, r#"{"name":"a"}"#)), Wish::Refused, "{method}");
        }
        assert_eq!(Wish::read(&request("prompts/list", "{}")), Wish::List(Feature::Prompt));
        let answer = message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(Wish::read(&answer), Wish::Free);
    }

    #[test]
    fn a_call_is_asked_about_under_its_own_name_also_when_it_wants_no_answer() {
        let call = request("tools/call", r#"{"name":"\u0061","arguments":{"b":1,"c":[]}}"#);
        let Wish::Ask(questions) = Wish::read(&call) else { panic!("nobody is asked") };
        let question = &questions[0];
        assert_eq!((questions.len(), question.feature, &*question.id), (1, Feature::Tool, "a"));
        assert_eq!(question.arguments, [("b".into(), "1"), ("c".into(), "[]")]);
        let quiet = message(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#);
        assert_eq!(Wish::read(&quiet), Wish::Ask(vec![Question::about(Feature::Tool, "a")]));
    }

    #[test]
    fn whoever_listens_asks_about_every_resource() {
        let about =
            |uris: &[&'static str]| Wish::Ask(uris.iter().map(|uri| Question::about(Feature::Resource, uri)).collect());
        for (params, expected) in [
            ("{}", about(&[])),
            (r#"{"notifications":{"toolsListChanged":true}}"#, about(&[])),
            (r#"{"notifications":{"resourceSubscriptions":null}}"#, about(&[])),
            (r#"{"notifications":{"resourceSubscriptions":["a","\u0062"]}}"#, about(&["a", "b"])),
            (r#"{"notifications":{"resourceSubscriptions":["b","a","b"]}}"#, about(&["b", "a"])),
            (r#"{"notifications":{"resourceSubscriptions":"a"}}"#, Wish::Unclear),
            (r#"{"notifications":{"resourceSubscriptions":["a",7]}}"#, Wish::Unclear),
            (r#"{"notifications":{"ResourceSubscriptions":["a"]}}"#, Wish::Unclear),
            (r#"{"notifications":{"resourceSubscriptions":[],"resourceSubscriptions":["a"]}}"#, Wish::Unclear),
            (r#"{"notifications":["a"]}"#, Wish::Unclear),
        ] {
            assert_eq!(Wish::read(&request("subscriptions/listen", params)), expected, "{params}");
        }
    }

    #[test]
    fn whoever_listens_asks_about_no_more_than_somebody_may_watch() {
        let listen = |many: usize| {
            let uris: Vec<String> = (0..many).map(|number| format!("hive://{number}")).collect();
            let params = serde_json::json!({"notifications": {"resourceSubscriptions": uris}});
            request("subscriptions/listen", &params.to_string())
        };
        let (most, more) = (listen(MOST_RESOURCES), listen(MOST_RESOURCES + 1));
        let Wish::Ask(questions) = Wish::read(&most) else { panic!("nobody is asked") };
        assert_eq!(questions.len(), MOST_RESOURCES);
        assert_eq!(Wish::read(&more), Wish::Unclear);
    }

    #[test]
    fn a_call_that_says_nothing_or_two_things_is_nobodys() {
        for params in [
            "{}",
            "null",
            r#"{"name":7}"#,
            r#"{"name":"a","arguments":[]}"#,
            r#"{"name":"a","arguments":{"b":1,"\u0062":2}}"#,
            r#"{"name":"a","arguments":{"path":"/ok","Path":"/etc"}}"#,
        ] {
            assert_eq!(Wish::read(&request("tools/call", params)), Wish::Unclear, "{params}");
        }
    }
}
