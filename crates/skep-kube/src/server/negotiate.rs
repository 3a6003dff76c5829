//! Which form of an answer a client wants, and in which form a body comes.

use crate::status::{ApiError, Reason};

/// The forms in which objects are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Whole objects.
    Object,
    /// Rows for `kubectl get`.
    Table,
    /// Objects with nothing but their metadata.
    PartialMetadata,
    PartialMetadataList,
}

/// Media types that answers can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
}

/// An acceptable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub form: Form,
    pub encoding: Encoding,
}

const PLAIN: Answer = Answer { form: Form::Object, encoding: Encoding::Json };

/// Chooses an answer by the `Accept` header: the first alternative that can be served, as clients list what they like
/// best first.
pub fn answer(accept: Option<&str>) -> Result<Answer, ApiError> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return Ok(PLAIN);
    };
    accept.split(',').find_map(|alternative| offer(alternative.trim())).ok_or_else(|| {
        ApiError::new(
            Reason::NotAcceptable,
            "only the following media types are accepted: application/json, application/yaml",
        )
    })
}

fn offer(alternative: &str) -> Option<Answer> {
    let mut parts = alternative.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "application/json" | "application/*" | "*/*" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        _ => return None,
    };
    let (mut as_, mut group, mut version) = ("", "", "");
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name {
            "as" => as_ = value,
            "g" => group = value,
            "v" => version = value,
            _ => {}
        }
    }
    let form = match (as_, group, version) {
        ("", _, _) => Form::Object,
        ("Table", "meta.k8s.io", "v1") => Form::Table,
        ("PartialObjectMetadata", "meta.k8s.io", "v1") => Form::PartialMetadata,
        ("PartialObjectMetadataList", "meta.k8s.io", "v1") => Form::PartialMetadataList,
        _ => return None,
    };
    Some(Answer { form, encoding })
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How a body is written.
pub fn body_encoding(content_type: Option<&str>) -> Result<Encoding, ApiError> {
    let media_type = content_type.unwrap_or("application/json").split(';').next().unwrap_or_default().trim();
    match media_type {
        "" | "application/json" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        other => Err(ApiError::new(
            Reason::UnsupportedMediaType,
            format!(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml, application/vnd.kubernetes.protobuf{}",
                if other == PROTOBUF { " (which this server does not understand yet)" } else { "" }
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_gets_tables_and_falls_back_to_objects() {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(answer(Some(accept)).unwrap().form, Form::Table);
        let only_beta = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(answer(Some(only_beta)).unwrap(), PLAIN);
    }

    #[test]
    fn nothing_and_anything_mean_json() {
        for accept in [
            None,
            Some(""),
            Some("*/*"),
            Some("text/html, */*;q=0.8"),
            Some("application/vnd.kubernetes.protobuf,application/json"),
        ] {
            assert_eq!(answer(accept).unwrap(), PLAIN, "{accept:?}");
        }
        assert!(answer(Some("text/html")).is_err());
    }
}
