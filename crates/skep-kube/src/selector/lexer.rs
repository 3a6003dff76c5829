//! The words of a label selector.

/// A word, with the text it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    End,
    Identifier(String),
    Exclamation,
    Comma,
    OpenParenthesis,
    CloseParenthesis,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    In,
    NotIn,
}

impl Token {
    /// The word as it was written; empty at the end.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::End => "",
            Self::Identifier(text) => text,
            Self::Exclamation => "!",
            Self::Comma => ",",
            Self::OpenParenthesis => "(",
            Self::CloseParenthesis => ")",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::In => "in",
            Self::NotIn => "notin",
        }
    }

    /// `in` and `notin` may also be keys and values.
    pub(super) fn or_identifier(self) -> Self {
        match self {
            Self::In | Self::NotIn => Self::Identifier(self.text().to_owned()),
            other => other,
        }
    }
}

/// All words of a text, with an end.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    // A NUL is the end, as the real server has it.
    let text = text.split('\0').next().unwrap_or_default();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let length = if is_symbol(first) {
            let symbols = ["==", "!="].iter().find(|symbol| rest.starts_with(**symbol));
            symbols.map_or(1, |symbol| symbol.len())
        } else {
            rest.find(|character| is_symbol(character) || is_space(character)).unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(length);
        tokens.push(token(word));
        rest = after.trim_start_matches(is_space);
    }
    tokens.push(Token::End);
    tokens
}

fn token(word: &str) -> Token {
    match word {
        "!" => Token::Exclamation,
        "," => Token::Comma,
        "(" => Token::OpenParenthesis,
        ")" => Token::CloseParenthesis,
        "=" => Token::Equals,
        "==" => Token::DoubleEquals,
        "!=" => Token::NotEquals,
        ">" => Token::Greater,
        "<" => Token::Less,
        "in" => Token::In,
        "notin" => Token::NotIn,
        identifier => Token::Identifier(identifier.to_owned()),
    }
}

const fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

const fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
