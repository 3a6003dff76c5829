//! Cedar policies as a server with many tools and teams has them.

/// So many policies, of which one lets everybody call the tool `echo`. Of the others, nine in ten are about other tools
/// and teams, and one looks at what every call says.
pub(crate) fn policies(count: usize) -> Vec<String> {
    let other = |number: usize| match number % 10 {
        0 => format!(
            r#"forbid(principal, action == Action::"call_tool", resource)
               when {{ context has arg_message && context.arg_message == "poison {number}" }};"#
        ),
        _ => format!(
            r#"permit(principal in THVGroup::"team-{number}", action == Action::"call_tool", resource == Tool::"tool-{number}")
               when {{ principal has claim_email && principal.claim_email like "*@example.com" }};"#
        ),
    };
    let echo = r#"permit(principal, action == Action::"call_tool", resource == Tool::"echo");"#;
    (1..count).map(other).chain([echo.to_owned()]).collect()
}

/// So many policies as teams write them: no scope names a resource, half of them name a group, and what a policy is about
/// is said by its conditions. One lets keepers call the tool `echo`.
pub(crate) fn of_teams(count: usize) -> Vec<String> {
    let other = |number: usize| match number % 10 {
        0 => format!(
            r#"forbid(principal, action, resource)
               when {{ context has arg_message && context.arg_message == "poison {number}" }};"#
        ),
        1..=5 => format!(
            r#"permit(principal in THVGroup::"team-{number}", action, resource)
               when {{ resource.name == "tool-{number}" || resource.name like "tool-{number}-*" }};"#
        ),
        _ => format!(
            r#"permit(principal, action, resource)
               when {{ action == Action::"call_tool" && resource.name == "tool-{number}"
                       && principal has claim_groups && principal.claim_groups.contains("team-{number}") }};"#
        ),
    };
    let echo = r#"permit(principal in THVGroup::"keepers", action, resource) when { resource.name == "echo" };"#;
    (1..count).map(other).chain([echo.to_owned()]).collect()
}
