//! The query of a request.

use serde_json::json;

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
    pub timeout_seconds: Option<u64>,
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
    bad_version_match: Option<String>,
    bad_field_validation: Option<String>,
}

/// How a revision in a list request is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    Exact,
    NotOlderThan,
}

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

    /// What makes no sense in a request of this kind, which `kind` names: `CreateOptions`, `ListOptions`.
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
        if let Some(unknown) = &self.bad_version_match {
            let detail = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
            errors.push(FieldError::new("resourceVersionMatch", Problem::NotSupported(json!(unknown)), detail));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(&ResourceName::new("meta.k8s.io", kind), "", &errors))
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), ApiError> {
        match name {
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "limit" => self.limit = number(&value)?.filter(|limit| *limit > 0),
            "continue" => self.continue_ = non_empty(value),
            "resourceVersion" => self.resource_version = non_empty(value),
            "resourceVersionMatch" => match value.as_str() {
                "" => {}
                "Exact" => self.resource_version_match = Some(VersionMatch::Exact),
                "NotOlderThan" => self.resource_version_match = Some(VersionMatch::NotOlderThan),
                _ => self.bad_version_match = Some(value),
            },
            "watch" => self.watch = flag(&value),
            "allowWatchBookmarks" => self.allow_bookmarks = flag(&value),
            "sendInitialEvents" => self.send_initial_events = Some(flag(&value)),
            "timeoutSeconds" => self.timeout_seconds = number(&value)?,
            "dryRun" => match value.as_str() {
                "" => {}
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
            "propagationPolicy" => self.propagation_policy = non_empty(value),
            "orphanDependents" => self.orphan_dependents = Some(flag(&value)),
            "includeObject" => self.include_object = non_empty(value),
            _ => {}
        }
        Ok(())
    }
}

/// The parameters of a query, decoded.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                if let Some(value) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    bytes.push(value);
                    rest = &tail[2..];
                } else {
                    bytes.push(byte);
                }
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
    value
        .parse()
        .map(Some)
        .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax")))
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
        for query in ["dryRun=Some", "fieldValidation=Maybe", "resourceVersionMatch=x"] {
            assert!(Options::parse(query).unwrap().check("CreateOptions").is_err(), "{query}");
        }
    }

    #[test]
    fn odd_encodings_do_not_panic() {
        for query in ["%", "%4", "a=%zz", "a=%ff%fe", "=&&==", "é=%C3%A9"] {
            assert!(Options::parse(query).is_ok(), "{query}");
        }
    }
}
