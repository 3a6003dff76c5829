//! Which form of an answer a client wants, and in which form a body comes.

use crate::status::{ApiError, Reason, ResourceName};

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
    /// Of objects that are no custom resources, and of metadata.
    Protobuf,
}

/// An acceptable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub form: Form,
    /// The `apiVersion` of the forms that are no objects of their kind.
    pub form_version: &'static str,
    pub encoding: Encoding,
}

const FORM_VERSION: &str = "meta.k8s.io/v1";
const OLD_FORM_VERSION: &str = "meta.k8s.io/v1beta1";
const PLAIN: Answer = Answer { form: Form::Object, form_version: FORM_VERSION, encoding: Encoding::Json };

/// Chooses an answer by the `Accept` header. Custom resources have no messages.
pub fn answer(accept: Option<&str>, is_custom: bool) -> Result<Answer, ApiError> {
    let can_be_served = |answer: &Answer| match answer.form {
        Form::Object => !(is_custom && answer.encoding == Encoding::Protobuf),
        Form::Table => answer.encoding != Encoding::Protobuf,
        Form::PartialMetadata | Form::PartialMetadataList => true,
    };
    if !is_custom && accept.is_some_and(|accept| !accept.trim().is_empty() && alternatives(accept).next().is_none()) {
        return Err(unheard_of());
    }
    choose(accept, PLAIN, |alternative| offer(alternative).filter(can_be_served))
}

/// Whoever serves built-in kinds has words of its own for media types that it has never heard of.
fn unheard_of() -> ApiError {
    let error = ApiError::new(
        Reason::NotAcceptable,
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    );
    ApiError { resource: Some(ResourceName::new("", "")), ..error }
}

/// Whether discovery is wanted all at once. It has no messages.
pub fn is_discovery_aggregated(accept: Option<&str>) -> Result<bool, ApiError> {
    choose(accept, false, |alternative| match (alternative.as_, alternative.group, alternative.version) {
        _ if alternative.encoding == Encoding::Protobuf => None,
        ("", _, _) => Some(false),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(true),
        _ => None,
    })
}

/// How a client is told that its request failed. Whatever it accepts, it gets an answer.
pub fn failure_encoding(accept: Option<&str>) -> Encoding {
    let plain = |alternative: &Alternative<'_>| alternative.as_.is_empty().then_some(alternative.encoding);
    choose(accept, PLAIN.encoding, plain).unwrap_or(PLAIN.encoding)
}

/// The first alternative that can be served, as clients list what they like best first.
fn choose<T>(accept: Option<&str>, default: T, offer: impl Fn(&Alternative<'_>) -> Option<T>) -> Result<T, ApiError> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return Ok(default);
    };
    alternatives(accept).find_map(|alternative| offer(&alternative)).ok_or_else(|| {
        ApiError::new(
            Reason::NotAcceptable,
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf",
        )
    })
}

fn alternatives(accept: &str) -> impl Iterator<Item = Alternative<'_>> {
    accept.split(',').filter_map(|alternative| Alternative::read(alternative.trim()))
}

/// One alternative of an `Accept` header, in an encoding that can be served.
#[derive(Debug)]
struct Alternative<'a> {
    encoding: Encoding,
    as_: &'a str,
    group: &'a str,
    version: &'a str,
}

impl<'a> Alternative<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let encoding = match parts.next()? {
            "application/json" | "application/*" | "*/*" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            PROTOBUF => Encoding::Protobuf,
            _ => return None,
        };
        let mut alternative = Self { encoding, as_: "", group: "", version: "" };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "as" => alternative.as_ = value,
                "g" => alternative.group = value,
                "v" => alternative.version = value,
                _ => {}
            }
        }
        Some(alternative)
    }
}

fn offer(alternative: &Alternative<'_>) -> Option<Answer> {
    let encoding = alternative.encoding;
    if alternative.as_.is_empty() {
        return Some(Answer { encoding, ..PLAIN });
    }
    let form_version = match (alternative.group, alternative.version) {
        ("meta.k8s.io", "v1") => FORM_VERSION,
        ("meta.k8s.io", "v1beta1") => OLD_FORM_VERSION,
        _ => return None,
    };
    let form = match alternative.as_ {
        "Table" => Form::Table,
        "PartialObjectMetadata" => Form::PartialMetadata,
        "PartialObjectMetadataList" => Form::PartialMetadataList,
        _ => return None,
    };
    Some(Answer { form, form_version, encoding })
}

pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How a body is written.
pub fn body_encoding(content_type: Option<&str>) -> Result<Encoding, ApiError> {
    let media_type = content_type.unwrap_or("application/json").split(';').next().unwrap_or_default().trim();
    match media_type {
        "" | "application/json" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        PROTOBUF => Ok(Encoding::Protobuf),
        _ => Err(unsupported_body()),
    }
}

/// A body in an encoding that is not read.
pub fn unsupported_body() -> ApiError {
    ApiError::new(
        Reason::UnsupportedMediaType,
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_gets_tables_and_falls_back_to_objects() {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(answer(Some(accept), false).unwrap().form, Form::Table);
        let only_beta = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let beta = answer(Some(only_beta), false).unwrap();
        assert_eq!((beta.form, beta.form_version), (Form::Table, "meta.k8s.io/v1beta1"));
        let unknown = "application/json;as=Table;v=v9;g=meta.k8s.io";
        assert!(answer(Some(unknown), false).is_err());
        assert_eq!(answer(Some(&format!("{unknown},application/json")), false).unwrap(), PLAIN);
    }

    #[test]
    fn discovery_comes_in_lists_or_all_at_once() {
        let all = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let unknown = "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList";
        assert!(is_discovery_aggregated(Some(all)).unwrap());
        assert!(!is_discovery_aggregated(None).unwrap());
        assert!(!is_discovery_aggregated(Some(&format!("{unknown},application/json"))).unwrap());
        assert!(is_discovery_aggregated(Some(unknown)).is_err());
    }

    #[test]
    fn nothing_and_anything_mean_json() {
        for accept in [None, Some(""), Some("*/*"), Some("text/html, */*;q=0.8")] {
            assert_eq!(answer(accept, false).unwrap(), PLAIN, "{accept:?}");
        }
        assert!(answer(Some("text/html"), false).is_err());
    }

    #[test]
    fn protobuf_is_for_built_in_objects_metadata_and_failures() {
        let go = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(answer(Some(go), false).unwrap().encoding, Encoding::Protobuf);
        assert_eq!(answer(Some(go), true).unwrap(), PLAIN);
        assert!(answer(Some(PROTOBUF), true).is_err());
        let table = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io";
        assert!(answer(Some(table), false).is_err());
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        assert_eq!(answer(Some(metadata), true).unwrap().encoding, Encoding::Protobuf);
        assert_eq!(failure_encoding(Some(go)), Encoding::Protobuf);
        assert_eq!(failure_encoding(Some(table)), Encoding::Json);
        assert_eq!(failure_encoding(Some("text/html")), Encoding::Json);
    }
}
