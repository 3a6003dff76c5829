//! A command line as words, as a shell splits it, without anything else that a shell does.

/// Why a line is no list of words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a quote in `{0}` has no end")]
pub struct OpenQuote(String);

/// Splits at blanks. Inside of quotes, single or double, everything stands for itself.
pub(super) fn split(line: &str) -> Result<Vec<String>, OpenQuote> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match quote {
            Some(open) if open == letter => quote = None,
            None if letter == '\'' || letter == '"' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(OpenQuote(line.to_owned()));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        let words = split(r#"patch  web -p '{"a": "b c"}' --name="x y" '' "#).unwrap();
        assert_eq!(words, ["patch", "web", "-p", r#"{"a": "b c"}"#, "--name=x y", ""]);
        assert!(split("say 'hello").is_err());
    }
}
