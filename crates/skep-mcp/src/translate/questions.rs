//! What a server wants to know from its client before it answers: in one era the result says so, in the other the
//! server asks.

use std::borrow::Cow;

use super::{error_code, get};
use crate::fault::URL_ELICITATION_REQUIRED;
use crate::json::{self, EditError};

/// What the result of a request that stands alone means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is the result.
    Complete,
    /// The client has to answer first, and repeat the request with the answers.
    Questions {
        /// What is asked.
        questions: Vec<Question>,
        /// What has to be repeated: a string, as JSON.
        state: Option<String>,
    },
    /// It is none that anybody knows.
    Unknown(String),
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What the answer goes under.
    pub key: String,
    /// How it is asked.
    pub method: String,
    /// With which parameters: an object, as JSON.
    pub params: String,
}

impl Question {
    /// Whether a client may be asked that declared these capabilities.
    pub fn is_declared(&self, capabilities: &str) -> bool {
        let declared = |path: &[&str]| get(capabilities, path).is_some_and(|value| value.starts_with('{'));
        match self.method.as_str() {
            "elicitation/create" if self.is_by_url() => declared(&["elicitation", "url"]),
            "elicitation/create" => {
                let is_bare = get(capabilities, &["elicitation"]).is_some_and(super::is_bare);
                is_bare || declared(&["elicitation", "form"])
            }
            "sampling/createMessage" => declared(&["sampling"]),
            "roots/list" => declared(&["roots"]),
            _ => false,
        }
    }

    /// Whether it sends a person to a page instead of asking them.
    pub fn is_by_url(&self) -> bool {
        get(&self.params, &["mode"]).and_then(json::decode).as_deref() == Some("url")
    }

    /// It as a member of the result that asks.
    pub fn as_member(&self) -> String {
        format!(r#"{}:{{"method":{},"params":{}}}"#, json::quote(&self.key), json::quote(&self.method), self.params)
    }

    /// The questions of an error by which an older server sends a person to pages first.
    pub fn of_error(error: &str) -> Vec<Self> {
        if error_code(error) != URL_ELICITATION_REQUIRED {
            return Vec::new();
        }
        let pages = get(error, &["data", "elicitations"]).and_then(|pages| json::items(pages).ok()).unwrap_or_default();
        let question = |(index, page): (usize, &str)| {
            let params = json::set(&without_id(page), &["mode"], "\"url\"").ok()?;
            Some(Self { key: format!("page-{index}"), method: "elicitation/create".to_owned(), params })
        };
        pages.into_iter().enumerate().filter_map(question).collect()
    }
}

/// Parameters of a question without the id that only one revision knows.
fn without_id(params: &str) -> String {
    json::remove(params, &["elicitationId"]).ok().flatten().unwrap_or_else(|| params.to_owned())
}

/// Reads what a result means.
pub fn outcome(result: &str) -> Result<Outcome, EditError> {
    let kind = get(result, &["resultType"]).map(|kind| json::decode(kind).unwrap_or_default().into_owned());
    match kind.as_deref() {
        None | Some("complete") => Ok(Outcome::Complete),
        Some("input_required") => {
            let asked = get(result, &["inputRequests"]).unwrap_or("{}");
            let question = |(key, value): (Cow<'_, str>, &str)| {
                let text = |name: &str| get(value, &[name]).and_then(json::decode).map(Cow::into_owned);
                Question {
                    key: key.into_owned(),
                    method: text("method").unwrap_or_default(),
                    params: get(value, &["params"]).unwrap_or("{}").to_owned(),
                }
            };
            let questions = json::members(asked)?.into_iter().map(question).collect();
            Ok(Outcome::Questions { questions, state: get(result, &["requestState"]).map(str::to_owned) })
        }
        Some(other) => Ok(Outcome::Unknown(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_taken_out_of_a_result_and_keep_their_words() {
        let result = r#"{"resultType":"input_required","inputRequests":{"a\"":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url","x":1.0}}},"requestState":""}"#;
        let Outcome::Questions { questions, state } = outcome(result).unwrap() else { panic!("no questions") };
        assert_eq!((questions[0].key.as_str(), questions[0].params.as_str()), ("a\"", "{}"));
        assert_eq!(questions[1].as_member(), r#""b":{"method":"elicitation/create","params":{"mode":"url","x":1.0}}"#);
        assert!(questions[1].is_by_url());
        assert_eq!(state.as_deref(), Some("\"\""));
        assert_eq!(outcome("{}").unwrap(), Outcome::Complete);
        assert_eq!(outcome(r#"{"resultType":"task"}"#).unwrap(), Outcome::Unknown("task".to_owned()));
    }

    #[test]
    fn only_what_was_declared_may_be_asked() {
        let question = |method: &str, params: &str| Question {
            key: String::new(),
            method: method.to_owned(),
            params: params.to_owned(),
        };
        let form = question("elicitation/create", "{}");
        let page = question("elicitation/create", r#"{"mode":"url"}"#);
        for (capabilities, is_form, is_page) in [
            ("{}", false, false),
            (r#"{"elicitation":{}}"#, true, false),
            (r#"{"elicitation":{"form":{}}}"#, true, false),
            (r#"{"elicitation":{"url":{}}}"#, false, true),
        ] {
            assert_eq!(
                (form.is_declared(capabilities), page.is_declared(capabilities)),
                (is_form, is_page),
                "{capabilities}"
            );
        }
        assert!(question("roots/list", "{}").is_declared(r#"{"roots":{}}"#));
        assert!(!question("tools/call", "{}").is_declared(r#"{"tools/call":{}}"#));
    }

    #[test]
    fn an_error_that_sends_to_pages_is_a_set_of_questions() {
        let error = r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://a","message":"go"}]}}"#;
        let questions = Question::of_error(error);
        assert_eq!(questions[0].params, r#"{"mode":"url","url":"https://a","message":"go"}"#);
        assert!(Question::of_error(r#"{"code":-32000,"message":""}"#).is_empty());
    }
}
