//! `$(NAME)` in commands, arguments and values.

/// Replaces every `$(NAME)` that `lookup` knows. An unknown one stays as it is, and `$$` stands for one dollar.
pub(crate) fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        result.push_str(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            result.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match lookup(name) {
                Some(value) => result.push_str(&value),
                None => result.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            result.push('$');
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced() {
        let lookup = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("$(A)".to_owned()),
            _ => None,
        };
        let table = [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "a"),
            ("x-$(A)-$(A)-y", "x-a-a-y"),
            ("$(EMPTY)", ""),
            ("$(UNKNOWN)", "$(UNKNOWN)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$a"),
            ("$$$$(A)", "$$(A)"),
            ("$A", "$A"),
            ("$(A", "$(A"),
            ("cost: 5$", "cost: 5$"),
            ("$(NESTED)", "$(A)"),
            ("$()", "$()"),
            ("ü$(A)ü", "üaü"),
        ];
        for (text, expected) in table {
            assert_eq!(expand(text, lookup), expected, "{text}");
        }
    }
}
