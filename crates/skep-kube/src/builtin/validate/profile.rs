//! What the kernel lets the processes of a pod or container do: seccomp and AppArmor.

use super::super::place::{At, struct_text};
use super::container::relative_path_problem;
use crate::status::{FieldError, Problem};

const TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// Both profiles of a security context.
pub(super) fn profiles(context: &At<'_>) -> Vec<FieldError> {
    let seccomp = context.member("seccompProfile");
    let app_armor = context.member("appArmorProfile");
    let mut errors: Vec<FieldError> = seccomp_profile(&seccomp).into_iter().collect();
    errors.extend(type_(&seccomp, "seccompProfile"));
    errors.extend(type_(&app_armor, "appArmorProfile"));
    errors.extend(app_armor_profile(&app_armor));
    errors
}

fn type_(profile: &At<'_>, name: &str) -> Option<FieldError> {
    let type_ = profile.member("type");
    match type_.own_text() {
        _ if !profile.is_set() => None,
        "" => Some(type_.required(&format!("type is required when {name} is set"))),
        known if TYPES.contains(&known) => None,
        _ => Some(type_.unsupported(&TYPES)),
    }
}

fn seccomp_profile(profile: &At<'_>) -> Option<FieldError> {
    let file = profile.member("localhostProfile");
    if profile.text("type") != "Localhost" {
        return file.is_set().then(|| {
            let members = [("Type", "type"), ("LocalhostProfile", "localhostProfile")];
            let text = struct_text(&members.map(|(shown, name)| (shown, profile.value[name].to_string())));
            let detail = "can only be set when seccomp type is Localhost";
            FieldError::new(file.path.as_str(), Problem::InvalidStruct(text), detail)
        });
    }
    if !file.is_set() {
        return Some(file.required("must be set when seccomp type is Localhost"));
    }
    relative_path_problem(file.own_text()).map(|problem| file.invalid(problem))
}

fn app_armor_profile(profile: &At<'_>) -> Option<FieldError> {
    let name = profile.member("localhostProfile");
    let given = name.own_text();
    match (profile.text("type"), given) {
        ("Localhost", "") => Some(name.required("must be set when AppArmor type is Localhost")),
        ("Localhost", _) => (given.trim() != given).then(|| name.invalid("must not be padded with whitespace")),
        _ => name.is_set().then(|| name.invalid("can only be set when AppArmor type is Localhost")),
    }
}
