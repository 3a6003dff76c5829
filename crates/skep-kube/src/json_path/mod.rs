//! The JSONPath dialect of Kubernetes, as printer columns and the scale subresource need it.
//!
//! It is older than RFC 9535 and has its own ways: `['a.b']` is the same as `.a.b` (a dot in a name is written
//! `\.`), slices that reach beyond the end are errors, and filters compare only values of the same type.

mod cell;
mod evaluate;
mod parse;

#[cfg(test)]
mod tests;

pub use cell::{ColumnType, cell};
pub use evaluate::EvaluationError;

/// A compiled path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// `.name`
    Member(String),
    /// `.*`
    Wildcard,
    /// `..`: the value and everything below it.
    Recursive,
    /// `[1]`, `[0:2]`, `[*]`
    Slice(Slice),
    /// `['a','b']`, `[0,2]`: the results of each, one after the other.
    Union(Vec<Vec<Step>>),
    /// `[?(@.a)]`, `[?(@.a=='b')]`
    Filter(Box<Filter>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: End,
    step: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is no colon: one item.
    One,
    Last,
    At(i64),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Operand,
    /// Without one, the left side must just be there.
    comparison: Option<(Comparison, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(Vec<Step>),
    Literal(serde_json::Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("unterminated array")]
    UnterminatedArray,
    #[error("unterminated filter")]
    UnterminatedFilter,
    #[error("unclosed array expect ]")]
    UnclosedArray,
    #[error("unterminated quoted string")]
    UnterminatedText,
    #[error("invalid array index {0}")]
    InvalidIndex(String),
    #[error("array index {0} is not a number")]
    NotANumber(String),
    #[error("unrecognized character in action: U+{:04X} '{character}'", u32::from(*.character))]
    InvalidCharacter { character: char },
    #[error("unrecognized identifier {0}")]
    UnknownWord(String),
    #[error("unrecognized filter operator {0}")]
    UnknownOperator(String),
    #[error("a path of more than {0} bytes")]
    TooLong(usize),
}
