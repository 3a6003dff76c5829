//! Reads paths.

use serde_json::Value;

use super::{Comparison, End, Filter, JsonPath, Operand, PathError, Slice, Step};

/// Longer than any path that somebody wrote.
const MAX_LENGTH: usize = 4096;

impl JsonPath {
    /// Compiles a path such as `.status.conditions[?(@.type=="Ready")].status`, with or without braces around it.
    pub fn compile(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_LENGTH {
            return Err(PathError::TooLong(MAX_LENGTH));
        }
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        Ok(Self { steps: steps(inner)? })
    }
}

/// Characters that end a name.
const fn ends_name(character: char) -> bool {
    matches!(character, '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' | ' ' | '\t' | '\r' | '\n')
}

fn steps(text: &str) -> Result<Vec<Step>, PathError> {
    let mut steps = Vec::new();
    let mut rest = text.trim_start();
    // The root, or the item at hand; a path starts there anyway.
    rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
    while let Some(first) = rest.chars().next() {
        rest = match first {
            ' ' | '\t' | '\r' | '\n' => rest.trim_start(),
            '.' if rest.starts_with("..") => {
                steps.push(Step::Recursive);
                let after = &rest[2..];
                let is_name = after.starts_with(|next: char| !ends_name(next));
                if after.starts_with('*') {
                    return Err(PathError::InvalidCharacter { character: '*' });
                }
                if is_name { member(after, &mut steps) } else { after }
            }
            '.' => member(&rest[1..], &mut steps),
            '[' => bracket(&rest[1..], &mut steps)?,
            word if word.is_alphabetic() => {
                let length = rest.find(ends_name).unwrap_or(rest.len());
                return Err(PathError::UnknownWord(rest[..length].to_owned()));
            }
            character => return Err(PathError::InvalidCharacter { character }),
        };
    }
    Ok(steps)
}

/// Reads a name, which may be empty, and gives what follows.
fn member<'a>(text: &'a str, steps: &mut Vec<Step>) -> &'a str {
    let mut escaping = false;
    let ends = |(_, character): &(usize, char)| {
        let ends = !escaping && ends_name(*character);
        escaping = !escaping && *character == '\\';
        ends
    };
    let end = text.char_indices().find(ends).map_or(text.len(), |(at, _)| at);
    let (name, rest) = text.split_at(end);
    steps.push(if name == "*" { Step::Wildcard } else { Step::Member(name.replace('\\', "")) });
    rest
}

/// Reads what stands in brackets, behind the first, and gives what follows the last.
fn bracket<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, PathError> {
    if let Some(text) = text.strip_prefix("?(") {
        let end = find_unquoted(text, ')').ok_or(PathError::UnterminatedFilter)?;
        let rest = text[end + 1..].strip_prefix(']').ok_or(PathError::UnclosedArray)?;
        steps.push(Step::Filter(Box::new(filter(&text[..end])?)));
        return Ok(rest);
    }
    let end = find_unquoted(text, ']').ok_or(PathError::UnterminatedArray)?;
    let (content, rest) = (&text[..end], &text[end + 1..]);
    if content.contains(',') {
        let alternatives = content.split(',').map(|part| selection(part.trim())).collect::<Result<_, _>>()?;
        steps.push(Step::Union(alternatives));
    } else {
        steps.extend(selection(content)?);
    }
    Ok(rest)
}

/// Where a character stands that is not inside a quoted text.
fn find_unquoted(text: &str, sought: char) -> Option<usize> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, _) if character == sought => return Some(at),
            _ => {}
        }
    }
    None
}

/// One alternative in brackets: a name in single quotes, or a slice.
fn selection(text: &str) -> Result<Vec<Step>, PathError> {
    let invalid = || PathError::InvalidIndex(text.to_owned());
    if let Some(name) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        if name.contains('\'') {
            return Err(invalid());
        }
        // The name is a path of its own.
        return steps(&format!(".{name}"));
    }
    if text == "*" {
        return Ok(vec![Step::Slice(Slice { start: None, end: End::Last, step: None })]);
    }
    let parts: Vec<&str> = text.split(':').collect();
    let is_number = |part: &&str| part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(is_number) {
        return Err(invalid());
    }
    let number = |index: usize| match parts.get(index) {
        None | Some(&"") => Ok(None),
        Some(part) => part.parse::<i64>().map(Some).map_err(|_| PathError::NotANumber((*part).to_owned())),
    };
    let end = match number(1)? {
        Some(end) => End::At(end),
        None if parts.len() > 1 => End::Last,
        None => End::One,
    };
    Ok(vec![Step::Slice(Slice { start: number(0)?, end, step: number(2)? })])
}

fn filter(text: &str) -> Result<Filter, PathError> {
    let is_sign = |character: char| matches!(character, '!' | '<' | '>' | '=');
    let Some(start) = text.find(is_sign).filter(|start| *start > 0) else {
        return Ok(Filter { left: operand(text)?, comparison: None });
    };
    let (left, rest) = text.split_at(start);
    let length = rest.find(|character| !is_sign(character)).unwrap_or(rest.len());
    let (sign, right) = rest.split_at(length);
    let comparison = match sign {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        other => return Err(PathError::UnknownOperator(other.to_owned())),
    };
    Ok(Filter { left: operand(left)?, comparison: Some((comparison, operand(right)?)) })
}

/// One side of a comparison: a path, a quoted text, a number or a truth value.
fn operand(text: &str) -> Result<Operand, PathError> {
    let text = text.trim();
    for quote in ['\'', '"'] {
        if let Some(rest) = text.strip_prefix(quote) {
            let (content, after) = rest.split_once(quote).ok_or(PathError::UnterminatedText)?;
            steps(after)?;
            return Ok(Operand::Literal(content.into()));
        }
    }
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+'));
    let literal = match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ if is_number && text.contains('.') => text.parse::<f64>().ok().map(Value::from),
        _ if is_number => text.parse::<i64>().ok().map(Value::from),
        _ => None,
    };
    match literal {
        Some(literal) => Ok(Operand::Literal(literal)),
        None if is_number => Err(PathError::NotANumber(text.to_owned())),
        None => steps(text).map(Operand::Path),
    }
}
