//! Volumes of pods.

use serde_json::{Map, Value};

use super::super::Quantity;
use super::super::place::{At, one_of};
use super::container::{Volumes, field_path, relative_path_problem};
use super::storage;
use crate::names::{dns1123_label, dns1123_subdomain};
use crate::status::FieldError;

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// Ten minutes.
const SHORTEST_TOKEN: i64 = 600;

/// Checks the volumes of a pod, and gives back those that are in order.
pub(super) fn volumes<'a>(spec: &At<'a>, errors: &mut Vec<FieldError>) -> Volumes<'a> {
    let mut good = Volumes::new();
    for volume in spec.items("volumes") {
        let mut found = source(&volume);
        let name = volume.member("name");
        if name.own_text().is_empty() {
            found.push(name.required(""));
        } else {
            found.extend(name.each(dns1123_label(name.own_text())));
        }
        if found.is_empty() && good.contains_key(name.own_text()) {
            found.push(name.duplicate());
        }
        if found.is_empty() {
            good.insert(name.own_text(), volume.value);
        }
        errors.extend(found);
    }
    good
}

/// The sources in the order in which the real server looks at them.
const SOURCES: [&str; 12] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "secret",
    "nfs",
    "persistentVolumeClaim",
    "downwardAPI",
    "configMap",
    "projected",
    "csi",
    "ephemeral",
    "image",
];

fn source(volume: &At<'_>) -> Vec<FieldError> {
    let mut errors = only_one(volume, &SOURCES, |kind, source| match kind {
        "hostPath" => host_path(source).into_iter().collect(),
        "secret" => files(source, "secretName"),
        "configMap" => files(source, "name"),
        "persistentVolumeClaim" => needs(source, "claimName").into_iter().collect(),
        "nfs" => nfs(source),
        "emptyDir" => size_limit(source).into_iter().collect(),
        "csi" => driver(source).into_iter().collect(),
        "ephemeral" => template(&source.member("volumeClaimTemplate")).into_iter().collect(),
        "downwardAPI" => mode(source).into_iter().chain(downward(source, source)).collect(),
        "projected" => projected(source),
        "gitRepo" => needs(source, "repository").into_iter().collect(),
        "image" => one_of(&source.member("pullPolicy"), &["Always", "IfNotPresent", "Never"]).into_iter().collect(),
        _ => Vec::new(),
    });
    let known = |name: &String| name == "name" || SOURCES.contains(&name.as_str());
    let mut others =
        volume.value.as_object().into_iter().flatten().filter(|(name, value)| !known(name) && value.is_object());
    if !SOURCES.iter().any(|kind| volume.member(kind).is_set()) && others.next().is_none() {
        errors.push(volume.required("must specify a volume type"));
    }
    errors
}

/// What is wrong with the source of a volume, by a rule for its kind. The first one counts, and any other is one too many.
pub(super) fn only_one(
    place: &At<'_>,
    kinds: &[&str],
    rule: impl Fn(&str, &At<'_>) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let given = kinds.iter().map(|kind| (*kind, place.member(kind))).filter(|(_, source)| source.is_set());
    let judge = |(index, (kind, source)): (usize, (&str, At<'_>))| match index {
        0 => rule(kind, &source),
        _ => vec![source.forbidden("may not specify more than 1 volume type")],
    };
    given.enumerate().flat_map(judge).collect()
}

fn needs(source: &At<'_>, name: &str) -> Option<FieldError> {
    source.text(name).is_empty().then(|| source.member(name).required(""))
}

fn size_limit(source: &At<'_>) -> Option<FieldError> {
    let limit = source.member("sizeLimit");
    let size = limit.value.as_str().and_then(Quantity::parse)?;
    size.is_negative().then(|| limit.forbidden("SizeLimit field must be a valid resource quantity"))
}

pub(super) fn nfs(source: &At<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = needs(source, "server").into_iter().collect();
    errors.extend(needs(source, "path"));
    let path = source.member("path");
    if !path.own_text().starts_with('/') {
        errors.push(path.invalid_as(path.own_text(), "must be an absolute path"));
    }
    errors
}

fn driver(source: &At<'_>) -> Vec<FieldError> {
    let driver = source.member("driver");
    let mut errors: Vec<FieldError> = needs(source, "driver").into_iter().collect();
    if errors.is_empty() {
        errors.extend(driver.each(dns1123_subdomain(&driver.own_text().to_lowercase())));
    }
    let secret = source.member("nodePublishSecretRef");
    if secret.is_set() {
        errors.extend(needs(&secret, "name"));
    }
    errors
}

/// A claim that comes and goes with the pod, which says what it is to be and not who it is.
fn template(template: &At<'_>) -> Vec<FieldError> {
    if !template.is_set() {
        return vec![template.required("")];
    }
    let metadata = template.member("metadata");
    let mut errors = metadata.member("labels").labels();
    let members = metadata.value.as_object().into_iter().flatten();
    let foreign =
        members.filter(|(name, value)| !matches!(name.as_str(), "labels" | "annotations") && !value.is_null());
    errors.extend(foreign.map(|(name, _)| metadata.member(name).forbidden("cannot be set")));
    errors.extend(storage::claim(&template.member("spec")));
    errors
}

pub(super) fn host_path(source: &At<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = needs(source, "path").into_iter().collect();
    if source.text("path").split('/').any(|part| part == "..") {
        errors.push(source.member("path").invalid("must not contain '..'"));
    }
    let kind = source.member("type");
    if !HOST_PATH_TYPES.contains(&kind.own_text()) {
        errors.push(kind.unsupported(&HOST_PATH_TYPES));
    }
    errors
}

fn mode(source: &At<'_>) -> Option<FieldError> {
    let place = source.member("defaultMode");
    wrong_mode(place.value).then(|| place.invalid("must be a number between 0 and 0777 (octal), both inclusive"))
}

fn wrong_mode(value: &Value) -> bool {
    value.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode))
}

fn files(source: &At<'_>, name: &str) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = needs(source, name).into_iter().collect();
    errors.extend(mode(source));
    for item in source.items("items") {
        errors.extend(needs(&item, "key"));
        errors.extend(file_path(&item.member("path")));
        let mode = item.member("mode");
        if wrong_mode(mode.value) {
            errors.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
        }
    }
    errors
}

fn file_path(path: &At<'_>) -> Option<FieldError> {
    if path.own_text().is_empty() {
        return Some(path.required(""));
    }
    if let Some(problem) = relative_path_problem(path.own_text()) {
        return Some(path.invalid(problem));
    }
    path.own_text().starts_with("..").then(|| path.invalid("must not start with '..'"))
}

/// Errors name the source: the real server leaves the items out.
fn downward(list: &At<'_>, shown: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for item in list.items("items") {
        let path = At { path: shown.member("path").path, value: &item.value["path"] };
        errors.extend(file_path(&path));
        let reference = At { path: shown.member("fieldRef").path, value: &item.value["fieldRef"] };
        if reference.is_set() {
            errors.extend(field_path(&reference, &FILE_FIELDS, true));
            if item.has("resourceFieldRef") {
                errors.push(
                    shown.invalid_as("resource", "fieldRef and resourceFieldRef can not be specified simultaneously"),
                );
            }
        } else if !item.has("resourceFieldRef") {
            errors.push(shown.required("one of fieldRef and resourceFieldRef is required"));
        }
    }
    errors
}

/// Which volumes of a pod are made of parts that are nothing.
pub(super) fn warnings(spec: &At<'_>) -> Vec<String> {
    let is_nothing = |part: &At<'_>| part.value.as_object().is_some_and(Map::is_empty);
    let volumes = spec.items("volumes").into_iter();
    let hollow = volumes.filter(|volume| volume.member("projected").items("sources").iter().any(is_nothing));
    hollow.map(|volume| format!("volume {:?} (Projected) has no sources provided", volume.text("name"))).collect()
}

fn projected(source: &At<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = mode(source).into_iter().collect();
    for part in source.items("sources") {
        for kind in ["secret", "configMap"] {
            let files_source = part.member(kind);
            if files_source.is_set() {
                errors.extend(files(&files_source, "name"));
            }
        }
        let downward_source = part.member("downwardAPI");
        if downward_source.is_set() {
            errors.extend(downward(&downward_source, &downward_source));
        }
        let token = part.member("serviceAccountToken");
        if token.is_set() {
            let seconds = token.member("expirationSeconds");
            if seconds.value.as_i64().is_some_and(|number| number < SHORTEST_TOKEN) {
                errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
            }
            if token.text("path").is_empty() {
                errors.push(source.member("path").required(""));
            } else {
                errors.extend(file_path(&token.member("path")));
            }
        }
    }
    errors
}
