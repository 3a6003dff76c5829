//! The query of a request.

use serde_json::json;

use crate::go_text::number_problem;
use crate::percent;
use crate::schema::duration;
use crate::status::{ApiError, FieldError, Problem, ResourceName};

/// What a request asks for beyond its path and body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    pub label_selector: String,
    pub field_selector: String,
    pub limit: Option<u64>,
    pub continue_: Option<String>,
    pub resource_version: Option<String>,
    pub resource_version_match: Option<VersionMatch>,
    pub watch: bool,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_seconds: Option<i64>,
    pub dry_run: bool,
    pub field_manager: Option<String>,
    pub field_validation: FieldValidation,
    pub force: Option<bool>,
    pub grace_period_seconds: Option<i64>,
    pub propagation_policy: Option<String>,
    pub orphan_dependents: Option<bool>,
    /// What the rows of a table carry of their objects.
    pub include_object: Option<String>,
    bad_dry_run: Option<String>,
    bad_field_validation: Option<String>,
}

/// How long a client waits for an answer is for the client to know, but it must make sense.
pub fn check_timeout(query: &str) -> Result<(), ApiError> {
    let given = pairs(query).find(|(name, _)| name == "timeout").map(|(_, value)| value).unwrap_or_default();
    if given.is_empty() {
        return Ok(());
    }
    let refuse = |why| ApiError::bad_request(format!("invalid timeout specified in the request URL - {why}"));
    duration::read(&given).map(drop).map_err(refuse)
}

/// How a revision in a list request is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionMatch {
    Exact,
    NotOlderThan,
    Unknown(String),
}

impl VersionMatch {
    fn read(text: String) -> Option<Self> {
        match text.as_str() {
            "" => None,
            "Exact" => Some(Self::Exact),
            "NotOlderThan" => Some(Self::NotOlderThan),
            _ => Some(Self::Unknown(text)),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Exact => "Exact",
            Self::NotOlderThan => "NotOlderThan",
            Self::Unknown(text) => text,
        }
    }
}

const VERSION_MATCH: &str = "resourceVersionMatch";
const MATCH_WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

/// What happens to members that the schema does not know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Strict,
    #[default]
    Warn,
    Ignore,
}

impl Options {
    /// Reads a query string. Unknown parameters are ignored, malformed ones refused.
    pub fn parse(query: &str) -> Result<Self, ApiError> {
        let mut options = Self::default();
        for (name, value) in pairs(query) {
            options.set(&name, value)?;
        }
        Ok(options)
    }

    /// What makes no sense in a write of this kind, which `kind` names: `CreateOptions`, `PatchOptions`.
    pub fn check(&self, kind: &str) -> Result<(), ApiError> {
        let mut errors = Vec::new();
        if let Some(unknown) = &self.bad_dry_run {
            let detail = "supported values: \"All\"";
            errors.push(FieldError::new("dryRun", Problem::NotSupported(json!([unknown])), detail));
        }
        if let Some(unknown) = &self.bad_field_validation {
            let detail = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
            errors.push(FieldError::new("fieldValidation", Problem::NotSupported(json!(unknown)), detail));
        }
        refuse(kind, &errors)
    }

    /// What a list request says about revisions must make sense together.
    pub fn check_list(&self) -> Result<(), ApiError> {
        let mut errors = Vec::new();
        if let Some(how) = &self.resource_version_match {
            if self.resource_version.is_none() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(VERSION_MATCH, detail));
            }
            if self.continue_.is_some() {
                errors.push(FieldError::forbidden(VERSION_MATCH, MATCH_WITH_CONTINUE));
            }
            if let VersionMatch::Unknown(unknown) = how {
                let detail = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
                errors.push(FieldError::new(VERSION_MATCH, Problem::NotSupported(json!(unknown)), detail));
            }
            if *how == VersionMatch::Exact && self.resource_version.as_deref() == Some("0") {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(VERSION_MATCH, detail));
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        refuse("ListOptions", &errors)
    }

    /// The same for a watch.
    pub fn check_watch(&self) -> Result<(), ApiError> {
        let mut errors = Vec::new();
        let how = self.resource_version_match.as_ref();
        if self.send_initial_events.is_some() && how != Some(&VersionMatch::NotOlderThan) {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(VERSION_MATCH, detail));
        }
        if how.is_some() && self.send_initial_events.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(VERSION_MATCH, detail));
        }
        if let Some(how) = how.filter(|how| **how != VersionMatch::NotOlderThan) {
            errors.push(FieldError::not_supported(VERSION_MATCH, how.text(), &["NotOlderThan"]));
        }
        // A watch that begins with what is there is taken for one that asked for it.
        let begins_with_state = matches!(self.resource_version.as_deref(), None | Some("0"));
        if self.continue_.is_some() && (how.is_some() || begins_with_state) {
            errors.push(FieldError::forbidden(VERSION_MATCH, MATCH_WITH_CONTINUE));
        }
        refuse("ListOptions", &errors)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), ApiError> {
        match name {
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "limit" => self.limit = number(&value)?.filter(|limit| *limit > 0),
            "continue" => self.continue_ = non_empty(value),
            "resourceVersion" => self.resource_version = non_empty(value),
            VERSION_MATCH => self.resource_version_match = VersionMatch::read(value),
            "watch" => self.watch = flag(&value),
            "allowWatchBookmarks" => self.allow_bookmarks = flag(&value),
            "sendInitialEvents" => self.send_initial_events = Some(flag(&value)),
            "timeoutSeconds" => self.timeout_seconds = signed(&value)?,
            "dryRun" => match value.as_str() {
                "All" => self.dry_run = true,
                _ => self.bad_dry_run = Some(value),
            },
            "fieldManager" => self.field_manager = non_empty(value),
            "fieldValidation" => match value.as_str() {
                "" | "Warn" => self.field_validation = FieldValidation::Warn,
                "Strict" => self.field_validation = FieldValidation::Strict,
                "Ignore" => self.field_validation = FieldValidation::Ignore,
                _ => self.bad_field_validation = Some(value),
            },
            "force" => self.force = Some(flag(&value)),
            "gracePeriodSeconds" => self.grace_period_seconds = signed(&value)?,
            "propagationPolicy" => self.propagation_policy = Some(value),
            "orphanDependents" => self.orphan_dependents = Some(flag(&value)),
            "includeObject" => self.include_object = non_empty(value),
            _ => {}
        }
        Ok(())
    }
}

fn refuse(kind: &str, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&ResourceName::new("meta.k8s.io", kind), "", errors))
}

/// The parameters of a query, decoded.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&percent::decode(&text.replace('+', " ")).bytes).into_owned()
}

fn non_empty(value: String) -> Option<String> {
    (!value.is_empty()).then_some(value)
}

/// Go's reading of a boolean parameter: only these two mean no.
fn flag(value: &str) -> bool {
    !matches!(value, "false" | "0")
}

fn number(value: &str) -> Result<Option<u64>, ApiError> {
    signed(value).map(|number| number.and_then(|number| u64::try_from(number).ok()))
}

fn signed(value: &str) -> Result<Option<i64>, ApiError> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|error| {
        ApiError::bad_request(format!("strconv.ParseInt: parsing {value:?}: {}", number_problem(&error)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_request_is_read() {
        let options = Options::parse("labelSelector=app%3Dweb%2Ctier+in+%28a%29&limit=500&watch=1&continue=").unwrap();
        assert_eq!(options.label_selector, "app=web,tier in (a)");
        assert_eq!((options.limit, options.watch, options.continue_), (Some(500), true, None));
    }

    #[test]
    fn malformed_numbers_and_unknown_values_are_refused() {
        for query in ["limit=many", "timeoutSeconds=1.5"] {
            assert!(Options::parse(query).is_err(), "{query}");
        }
        for query in ["dryRun=Some", "fieldValidation=Maybe"] {
            assert!(Options::parse(query).unwrap().check("CreateOptions").is_err(), "{query}");
        }
    }

    #[test]
    fn lists_and_watches_have_rules_of_their_own() {
        for (query, list, watch) in [
            ("resourceVersion=1&resourceVersionMatch=x", 1, 2),
            ("resourceVersion=1&resourceVersionMatch=Exact", 0, 2),
            ("resourceVersion=0&resourceVersionMatch=Exact", 1, 2),
            ("resourceVersionMatch=NotOlderThan", 1, 1),
            ("resourceVersionMatch=NotOlderThan&sendInitialEvents=true", 2, 0),
            ("sendInitialEvents=true", 1, 1),
            ("continue=x", 0, 1),
        ] {
            let options = Options::parse(query).unwrap();
            let problems = |checked: Result<(), ApiError>| checked.err().map_or(0, |error| error.causes.len());
            assert_eq!((problems(options.check_list()), problems(options.check_watch())), (list, watch), "{query}");
        }
    }

    #[test]
    fn odd_encodings_do_not_panic() {
        for query in ["%", "%4", "a=%zz", "a=%ff%fe", "=&&==", "é=%C3%A9"] {
            assert!(Options::parse(query).is_ok(), "{query}");
        }
    }
}
