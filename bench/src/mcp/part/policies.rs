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
