//! What a message asks for, as far as somebody has to allow it. Decided by the body alone.

use std::borrow::Cow;

use skep_mcp::catalog::CatalogKind;
use skep_mcp::json::{self, EditError};
use skep_mcp::{Kind, Message, Param, method};

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
    pub(super) arguments: Vec<(String, &'a str)>,
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
        Some(Self { feature, id: message.param_text(subject)?, arguments })
    }
}

/// What has to happen to a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wish<'a> {
    /// Everybody may.
    Free,
    /// Everybody may, and sees what they may use.
    List(Feature),
    /// Somebody has to be asked.
    Ask(Question<'a>),
    /// Nobody may.
    Refused,
}

impl<'a> Wish<'a> {
    /// What a message wishes. A method that is not known here is nobody's.
    pub(super) fn read(message: &'a Message) -> Self {
        let ask = |feature| Question::read(feature, message).map_or(Self::Refused, Self::Ask);
        match message.method() {
            _ if message.kind() == Kind::Response => Self::Free,
            method::TOOLS_CALL => ask(Feature::Tool),
            method::PROMPTS_GET => ask(Feature::Prompt),
            method::RESOURCES_READ | method::SUBSCRIBE | method::UNSUBSCRIBE => ask(Feature::Resource),
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
                | method::LISTEN
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

/// The members that decide what a message is, and which a careless reader takes under another spelling.
const DECISIVE: [&str; 8] = ["jsonrpc", "id", "method", "params", "name", "uri", "arguments", "_meta"];

/// Whether somebody who does not care about capitals could read another message than we do. Some JSON libraries match
/// names that way, and take the last one.
pub(super) fn is_ambiguous(message: &Message) -> Result<bool, EditError> {
    let has_double = |object: &str| -> Result<bool, EditError> {
        Ok(json::members(object)?.iter().any(|(name, _)| {
            let plain = fold(name);
            plain != *name && DECISIVE.contains(&plain.as_str())
        }))
    };
    let text = message.as_str();
    let params = message.params_span().map(|span| span.of(text)).filter(|params| params.starts_with('{'));
    Ok(has_double(text)? || params.map_or(Ok(false), has_double)?)
}

/// A name in small letters, with the two letters beyond ASCII that are the capitals of ones within.
fn fold(name: &str) -> String {
    let plain = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    name.chars().map(plain).collect()
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
        for method in ["initialize", "server/discover", "subscriptions/listen", "completion/complete", "ping"] {
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
        let Wish::Ask(question) = Wish::read(&call) else { panic!("nobody is asked") };
        assert_eq!((question.feature, &*question.id), (Feature::Tool, "a"));
        assert_eq!(question.arguments, [("b".to_owned(), "1"), ("c".to_owned(), "[]")]);
        let quiet = message(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#);
        assert_eq!(Wish::read(&quiet), Wish::Ask(Question::about(Feature::Tool, "a")));
    }

    #[test]
    fn a_call_that_says_nothing_or_two_things_is_nobodys() {
        for params in [
            "{}",
            "null",
            r#"{"name":7}"#,
            r#"{"name":"a","arguments":[]}"#,
            r#"{"name":"a","arguments":{"b":1,"\u0062":2}}"#,
        ] {
            assert_eq!(Wish::read(&request("tools/call", params)), Wish::Refused, "{params}");
        }
    }

    #[test]
    fn another_spelling_of_what_matters_is_noticed() {
        for (params, expected) in [
            (r#"{"name":"a","Name":"b"}"#, true),
            (r#"{"name":"a","argument\u017f":{}}"#, true),
            (r#"{"name":"a","NAME ":"b","title":1}"#, false),
            (r#"{"name":"a","arguments":{"Name":"x"}}"#, false),
        ] {
            assert_eq!(is_ambiguous(&request("tools/call", params)), Ok(expected), "{params}");
        }
        let twice = message(r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#);
        assert_eq!(is_ambiguous(&twice), Ok(true));
    }
}
