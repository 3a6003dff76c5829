//! CEL expressions that users write into a spec: whether they are expressions at all.

use kube_cel::cel::Program;

/// Longer ones are refused by the schema.
const MAX_LENGTH: usize = 4_096;

/// What reading an expression of that many levels takes at most. Only what is used becomes real memory.
const STACK: usize = 128 << 20;

/// What is wrong with an expression. What it evaluates to is seen only with the claims of a token.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("must not be longer than {MAX_LENGTH} characters"));
    }
    // The parser uses the stack for every level of an expression, and panics at times.
    let read = std::thread::scope(|scope| {
        let parse = || Program::compile(text).map(drop).map_err(|errors| errors.to_string());
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, parse);
        thread.ok().and_then(|thread| thread.join().ok())
    });
    let complaint = match read {
        Some(Ok(())) => return Ok(()),
        Some(Err(errors)) => errors,
        None => "it cannot be read".to_owned(),
    };
    Err(format!("is not a CEL expression: {complaint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_told_from_other_texts() {
        for text in ["claims.azp == 'a'", "claims.groups.exists(group, group.startsWith('x'))", "true"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for text in ["claims.azp ==", "claims.azp = 'a'", "", "'open", "))"] {
            let complaint = check(text).unwrap_err();
            assert!(complaint.starts_with("is not a CEL expression: "), "{text}: {complaint}");
        }
        assert_eq!(check(&"a".repeat(5_000)), Err("must not be longer than 4096 characters".to_owned()));
    }

    #[test]
    fn a_deep_expression_does_not_end_the_process() {
        let text = format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000));
        // Whether it is read or refused does not matter here.
        let _ = check(&text);
    }
}
