//! The versions in which objects of a CustomResourceDefinition may be stored.

use serde_json::Value;

use crate::status::FieldError;

/// The versions in which objects may be stored, once a definition is what `spec` says: those in which they were
/// `stored` so far, and the one in which they are stored from now on.
pub fn stored_versions(spec: &Value, stored: &Value) -> Vec<String> {
    let mut versions: Vec<String> =
        stored.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let storage = each(spec).find(|(_, storage)| *storage).map(|(name, _)| name.to_owned());
    versions.extend(storage.filter(|storage| !versions.contains(storage)));
    versions
}

/// The versions of a definition, and whether each is the one in which objects are stored.
fn each(spec: &Value) -> impl Iterator<Item = (&str, bool)> {
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions.map(|version| (version["name"].as_str().unwrap_or_default(), version["storage"] == true))
}

pub(super) fn check(spec: &Value, stored: &Value) -> Vec<FieldError> {
    let at = "status.storedVersions";
    let stored = stored_versions(spec, stored);
    if stored.is_empty() {
        return vec![FieldError::invalid(at, Value::Null, "must have at least one stored version")];
    }
    let mut errors = Vec::new();
    let mut unseen: Vec<(usize, &String)> = stored.iter().enumerate().collect();
    for (name, is_storage) in each(spec) {
        let before = unseen.len();
        unseen.retain(|(_, version)| *version != name);
        if is_storage && unseen.len() == before {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(at, stored.clone(), detail));
        }
    }
    errors.extend(unseen.into_iter().map(|(index, version)| {
        let detail = format!(
            "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {version} and removes {version} from \
             status.storedVersions"
        );
        FieldError::invalid(format!("{at}[{index}]"), version.as_str(), detail)
    }));
    errors.extend(check_converted(spec, &stored));
    errors
}

/// Objects are stored without their version: the storage version is what they are in. Where they must be translated, it
/// can therefore not change, because nobody is called to do it. (A real server would call the webhook when it reads.)
fn check_converted(spec: &Value, stored: &[String]) -> Option<FieldError> {
    let is_mixed = stored.len() > 1 && spec["conversion"]["strategy"] == "Webhook";
    let detail = "this server calls no conversion webhooks, so that all objects must be stored in one version";
    is_mixed.then(|| FieldError::invalid("status.storedVersions", stored.to_vec(), detail))
}
