//! The rules that a kind's own schema states in CEL, asked once more by the controller. Asking the schema itself
//! leaves no second list of rules and words that could come to differ.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::{CompiledSchema, ErrorKind, ValidationError, Validator, compile_schema};
use serde::Serialize;
use skep_api::kind::Kind;

/// The rules of a kind's spec, compiled.
pub(super) struct Rules(CompiledSchema);

impl Rules {
    pub(super) fn of<K: Kind>() -> Self {
        Self(compile_schema(&skep_api::crd::root_schema::<K>()["properties"]["spec"]))
    }

    /// What the rules have against a spec: one line each, with the path of the member below the spec.
    pub(super) fn check<T: Serialize>(&self, spec: &T) -> Result<(), String> {
        let spec =
            serde_json::to_value(spec).map_err(|error| format!("the spec cannot be written as JSON: {error}"))?;
        // The interpreter is known to panic on values that nobody thought of. One object must not end the controller.
        let asked = catch_unwind(AssertUnwindSafe(|| Validator::new().validate_compiled(&self.0, &spec, None)));
        match asked {
            Ok(Ok(())) => Ok(()),
            Ok(Err(broken)) => Err(told(broken.into_vec())),
            Err(_) => Err("the rules of the schema cannot be evaluated for this spec".to_owned()),
        }
    }
}

fn told(mut broken: Vec<ValidationError>) -> String {
    // A rule that cannot be evaluated depends on a member that another rule asks for.
    if broken.iter().any(|error| error.kind == ErrorKind::ValidationFailure) {
        broken.retain(|error| error.kind == ErrorKind::ValidationFailure);
    }
    // Members are walked in no particular order; the rules of one member stay in theirs.
    broken.sort_by(|one, other| one.field_path.cmp(&other.field_path));
    let lines: Vec<String> = broken.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use skep_api::kinds::{MCPExternalAuthConfig, MCPTelemetryConfig, MCPWebhookConfig};

    use super::*;

    /// A rule that does not compile here would make every object invalid.
    #[test]
    fn auth_trap_77_every_rule_of_a_schema_is_one_here() {
        let all =
            [Rules::of::<MCPExternalAuthConfig>(), Rules::of::<MCPTelemetryConfig>(), Rules::of::<MCPWebhookConfig>()];
        for rules in all {
            assert!(!rules.0.has_errors(), "{:?}", rules.0.compilation_errors());
        }
    }
}
