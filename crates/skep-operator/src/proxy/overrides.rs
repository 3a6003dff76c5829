//! Whether what users add to the objects of a proxy can be there. Told here, it has the name of their own member; told by
//! the API server, that of an object they have not written.

use std::collections::BTreeMap;

use skep_api::kinds::overrides::MetadataOverrides;
use skep_api::names::LABEL_LIMIT;

use super::Inputs;
use crate::object_names::is_name;

const FIELD: &str = "spec.resourceOverrides";
const WORD: &str = "letters, digits, hyphens, underscores and dots, with a letter or digit at both ends";

/// The first addition that the API server would refuse, and what to do about it.
pub(super) fn check(inputs: &Inputs<'_>) -> Result<(), String> {
    if let Some(deployment) = inputs.deployment_overrides() {
        check_metadata("proxyDeployment", &deployment.labels, &deployment.annotations)?;
        for (index, variable) in deployment.env.iter().enumerate() {
            let is_fine = |letter: char| (letter == ' ' || letter.is_ascii_graphic()) && letter != '=';
            if variable.name.is_empty() || !variable.name.chars().all(is_fine) {
                return Err(format!(
                    "{FIELD}.proxyDeployment.env[{index}].name {:?} is no name of a variable; use ASCII characters other \
                     than =",
                    variable.name
                ));
            }
        }
    }
    let template = inputs.template_overrides().map(|found| ("proxyDeployment.podTemplateMetadataOverrides", found));
    let service = inputs.service_overrides().map(|found| ("proxyService", found));
    template
        .into_iter()
        .chain(service)
        .try_for_each(|(place, MetadataOverrides { annotations, labels })| check_metadata(place, labels, annotations))
}

fn check_metadata(
    place: &str,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Result<(), String> {
    for (key, value) in labels {
        if !is_key(key) {
            return Err(format!("{FIELD}.{place}.labels: {}", no_key(key, "a label")));
        }
        if !value.is_empty() && !is_word(value) {
            return Err(format!(
                "{FIELD}.{place}.labels: the value {value:?} of {key} is none for a label; use at most {LABEL_LIMIT} {WORD}"
            ));
        }
    }
    match annotations.keys().find(|key| !is_key(&key.to_ascii_lowercase())) {
        Some(key) => Err(format!("{FIELD}.{place}.annotations: {}", no_key(key, "an annotation"))),
        None => Ok(()),
    }
}

fn no_key(key: &str, what: &str) -> String {
    format!("{key:?} is no name of {what}; use at most {LABEL_LIMIT} {WORD}, after a domain and a slash if need be")
}

/// A word, or a word of a domain.
fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, word)) => is_name(domain) && is_word(word),
        None => is_word(text),
    }
}

fn is_word(text: &str) -> bool {
    let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    text.len() <= LABEL_LIMIT
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::proxy::pod::samples::Sample;

    fn told(overrides: &Value) -> String {
        let mut sample = Sample::new(false, "s");
        sample.spec["resourceOverrides"] = overrides.clone();
        sample.with_inputs(check).err().unwrap_or_default()
    }

    #[test]
    fn additions_are_told_by_the_name_that_their_author_knows() {
        let deployment = |member: &str, value: Value| json!({"proxyDeployment": {member: value}});
        for fine in [
            json!({}),
            deployment("labels", json!({"team": "", "example.com/Team_1": "A.b"})),
            deployment("annotations", json!({"Example.com/x": "any thing"})),
            deployment("env", json!([{"name": "A.b-c d", "value": "v"}])),
        ] {
            assert_eq!(told(&fine), "", "{fine}");
        }
        let template = json!({"podTemplateMetadataOverrides": {"annotations": {"-a": "x"}}});
        for (overrides, expected) in [
            (
                deployment("labels", json!({"no label!": "x"})),
                "proxyDeployment.labels: \"no label!\" is no name of a label",
            ),
            (deployment("labels", json!({"a": "b c"})), "proxyDeployment.labels: the value \"b c\" of a is none"),
            (
                deployment("labels", json!({"A.com/a": "b"})),
                "proxyDeployment.labels: \"A.com/a\" is no name of a label",
            ),
            (
                deployment("annotations", json!({"a/b/c": "x"})),
                "proxyDeployment.annotations: \"a/b/c\" is no name of an",
            ),
            (
                deployment("env", json!([{"name": "A", "value": "v"}, {"name": "B=C", "value": "v"}])),
                "proxyDeployment.env[1].name \"B=C\" is no name of a variable",
            ),
            (
                json!({"proxyDeployment": template}),
                "proxyDeployment.podTemplateMetadataOverrides.annotations: \"-a\" is no name of an annotation",
            ),
            (json!({"proxyService": {"labels": {"": "x"}}}), "proxyService.labels: \"\" is no name of a label"),
        ] {
            let told = told(&overrides);
            assert!(told.starts_with(&format!("spec.resourceOverrides.{expected}")), "{told}");
        }
    }
}
