//! What is wrong with policies and entities, and where.

use std::error::Error;

use cedar_policy::ParseErrors;
use miette::Diagnostic;

/// Why a text is no policy, and where that was noticed.
pub(super) fn told(error: &ParseErrors, text: &str) -> String {
    let place = error.labels().and_then(|mut labels| labels.next()).map(|label| label.offset());
    match place.and_then(|offset| text.get(..offset)) {
        Some(before) => {
            let (line, column) =
                (before.matches('\n').count() + 1, before.chars().rev().take_while(|c| *c != '\n').count());
            format!("line {line}, column {}: {error}", column + 1)
        }
        None => error.to_string(),
    }
}

/// An error with all that it comes from, each once.
pub(super) fn whole(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !told.contains(&text) {
            told = format!("{told}: {text}");
        }
        cause = error.source();
    }
    told
}

#[cfg(test)]
mod tests {
    use crate::middleware::authz::cedar::{Cedar, CedarSettings};

    fn said(policy: &str, entities: &str) -> String {
        let settings = CedarSettings {
            policies: vec![policy.to_owned()],
            entities: entities.to_owned(),
            ..CedarSettings::default()
        };
        Cedar::new(settings).unwrap_err().to_string()
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let told = said("permit(principal, action, resource)\nwhen { contxt. };", "");
        assert!(told.starts_with("cedar.policies[0] is no Cedar policy: line 2, column 16: "), "{told}");
        let good = "permit(principal, action, resource);";
        let told = said(good, "[{]");
        assert!(told.contains("line 1 column 3"), "{told}");
        let told = said(good, r#"[{"uid": {"type": "Client", "id": "a"}, "attrs": 7, "parents": []}]"#);
        assert!(told.contains("line 1 column"), "{told}");
    }
}
