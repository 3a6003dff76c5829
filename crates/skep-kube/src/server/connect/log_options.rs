//! What of a log is wanted.

use super::options::{is_true, not_a_number};
use crate::go_time::{self, Layout};
use crate::server::options::pairs;
use crate::status::{ApiError, FieldError, ResourceName};

/// The options of a request for a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LogOptions {
    pub(super) container: Option<String>,
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<String>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    stream: Option<String>,
}

impl LogOptions {
    pub(super) fn read(query: &str) -> Result<Self, ApiError> {
        let mut options = Self::default();
        for (name, value) in pairs(query) {
            match name.as_str() {
                "container" => options.container = Some(value),
                "follow" => options.follow = is_true(&value),
                "previous" => options.previous = is_true(&value),
                "timestamps" => options.timestamps = is_true(&value),
                "sinceSeconds" => options.since_seconds = Some(number(&value)?),
                "sinceTime" => options.since_time = Some(time(&value)?),
                "tailLines" => options.tail_lines = Some(number(&value)?),
                "limitBytes" => options.limit_bytes = Some(number(&value)?),
                "stream" => options.stream = Some(value),
                _ => {}
            }
        }
        Ok(options)
    }

    /// Refuses what makes no sense.
    pub(super) fn check(&self, pod: &str) -> Result<(), ApiError> {
        let mut errors = Vec::new();
        if let Some(lines @ ..0) = self.tail_lines {
            errors.push(FieldError::invalid("tailLines", lines, "must be greater than or equal to 0"));
        }
        if let Some(bytes @ ..1) = self.limit_bytes {
            errors.push(FieldError::invalid("limitBytes", bytes, "must be greater than 0"));
        }
        match (self.since_seconds, &self.since_time) {
            (Some(_), Some(_)) => {
                let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                errors.push(FieldError::forbidden("[]", detail));
            }
            (Some(seconds @ ..1), None) => {
                errors.push(FieldError::invalid("sinceSeconds", seconds, "must be greater than 0"));
            }
            _ => {}
        }
        if self.stream.is_some() {
            errors.push(FieldError::forbidden("stream", "may not be specified"));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(&ResourceName::new("", "PodLogOptions"), pod, &errors))
    }

    /// The same for a node.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let flag = |is_set: bool| is_set.then(|| "true".to_owned());
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let all = [
            ("follow", flag(self.follow)),
            ("limitBytes", number(self.limit_bytes)),
            ("previous", flag(self.previous)),
            ("sinceSeconds", number(self.since_seconds)),
            ("sinceTime", self.since_time.clone()),
            ("tailLines", number(self.tail_lines)),
            ("timestamps", flag(self.timestamps)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

fn number(value: &str) -> Result<i64, ApiError> {
    value.parse().map_err(|_| not_a_number(value))
}

fn time(value: &str) -> Result<String, ApiError> {
    match go_time::complaint(value, Layout::Seconds) {
        Some(complaint) => Err(ApiError::bad_request(complaint)),
        None => Ok(value.to_owned()),
    }
}
