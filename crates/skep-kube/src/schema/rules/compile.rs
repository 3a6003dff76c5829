//! Whether an expression is one, and fits the schema it is written for; told as the server's compiler tells it.

use std::sync::Arc;

use kube_cel::cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, SourceInfo};
use kube_cel::cel::parser::{Expression, ParseErrors, Parser};

use super::super::Schema;
use super::check::{Checker, Mistake};
use super::macros;

/// An expression with more characters than this is not read, as on the server.
const MAX_LENGTH: usize = 100_000;

/// More signs than this, each of which may make the expression one level deeper, are not read.
const MAX_SIGNS: usize = 5_000;

/// Expressions deeper than this are refused, as on the server.
const MAX_DEPTH: usize = 250;

/// What reading an expression of [`MAX_SIGNS`] levels takes at most. Only what is used becomes real memory.
const STACK: usize = 128 << 20;

/// Why an expression is refused.
#[derive(Debug, PartialEq)]
pub(crate) enum CompileProblem {
    /// Mistakes in the expression, each with the line it is in.
    Mistakes(String),
    /// It has another type than it must have.
    WrongType,
    /// What can be evaluated beforehand fails.
    Unfit(String),
}

impl CompileProblem {
    /// In the words of the server about a rule.
    pub(crate) fn of_rule(&self) -> String {
        match self {
            Self::Mistakes(list) => format!("compilation failed: {list}"),
            Self::WrongType => "cel expression must evaluate to a bool".to_owned(),
            Self::Unfit(problem) => format!("program instantiation failed: {problem}"),
        }
    }

    /// In the words of the server about the expression of a message.
    pub(crate) fn of_message(&self) -> String {
        match self {
            Self::Mistakes(list) => format!("messageExpression compilation failed: {list}"),
            Self::WrongType => "messageExpression must evaluate to a string".to_owned(),
            Self::Unfit(problem) => format!("messageExpression instantiation failed: {problem}"),
        }
    }
}

/// Reads an expression. Optional fields (`self.?name`) are allowed in rules.
pub(super) fn parse(source: &str) -> Result<Expression, Vec<Mistake>> {
    let refuse = |message: &str| vec![Mistake { line: 1, column: 1, message: message.to_owned() }];
    let signs = source.bytes().filter(u8::is_ascii_punctuation).count();
    if source.len() > MAX_LENGTH || signs > MAX_SIGNS {
        return Err(refuse("expression code point size exceeds limit"));
    }
    let read = with_large_stack(|| {
        let mut expression =
            Parser::new().enable_optional_syntax(true).parse(source).map_err(|errors| mistakes(&errors))?;
        macros::expand(&mut expression).map_err(|(id, message)| {
            let (line, column) = position(source, positions(source).as_deref(), id);
            vec![Mistake { line, column, message }]
        })?;
        let deep = depth(&expression) > MAX_DEPTH;
        if deep { Err(refuse("expression recursion limit exceeded")) } else { Ok(expression) }
    });
    read.unwrap_or_else(|| Err(refuse("Syntax error: unreadable expression")))
}

/// The parser uses the stack for every level of an expression, and panics at times: it runs in a thread of its own.
pub(super) fn with_large_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, run)
            .ok()
            .and_then(|thread| thread.join().ok())
    })
}

/// How many levels an expression has.
pub(super) fn depth(expression: &Expression) -> usize {
    let deepest = |parts: &mut dyn Iterator<Item = &Expression>| parts.map(depth).max().unwrap_or_default();
    1 + match &expression.expr {
        Expr::Call(call) => deepest(&mut call.target.as_deref().into_iter().chain(&call.args)),
        Expr::Select(select) => depth(&select.operand),
        Expr::List(list) => deepest(&mut list.elements.iter()),
        Expr::Map(map) => {
            let depths = map.entries.iter().map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
                EntryExpr::StructField(field) => depth(&field.value),
            });
            depths.max().unwrap_or_default()
        }
        Expr::Comprehension(comprehension) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } = &**comprehension;
            deepest(&mut [iter_range, accu_init, loop_cond, loop_step, result].into_iter())
        }
        _ => 0,
    }
}

fn mistakes(errors: &ParseErrors) -> Vec<Mistake> {
    let place = |place: isize| usize::try_from(place).unwrap_or(1);
    errors
        .errors
        .iter()
        .map(|error| Mistake { line: place(error.pos.0), column: place(error.pos.1), message: error.msg.clone() })
        .collect()
}

/// Whether an expression asks about the old value.
pub(crate) fn uses_old_self(source: &str) -> bool {
    parse(source).is_ok_and(|expression| expression.references().has_variable("oldSelf"))
}

/// What is wrong with an expression at a place with this schema that must evaluate to `wanted`.
pub(crate) fn compile_problem(
    source: &str,
    schema: &Schema,
    whole: bool,
    optional_old_self: bool,
    wanted: &str,
) -> Option<CompileProblem> {
    let expression = match parse(source) {
        Ok(expression) => expression,
        Err(mistakes) => return Some(CompileProblem::Mistakes(shown(source, mistakes))),
    };
    let positions = positions(source);
    let check = || {
        let locate = |id: u64| position(source, positions.as_deref(), id);
        let mut checker = Checker::new(schema, whole, optional_old_self, &locate);
        let found = checker.check(&expression);
        if !checker.mistakes.is_empty() {
            return Some(CompileProblem::Mistakes(shown(source, checker.mistakes)));
        }
        if !found.may_be(wanted) {
            return Some(CompileProblem::WrongType);
        }
        checker.unfit.map(CompileProblem::Unfit)
    };
    with_large_stack(check).flatten()
}

/// Where each part of an expression stands. The parser tells it only along with errors, so the expression is read a
/// second time as the first of a list whose second is wrong. The list takes the first id.
fn positions(source: &str) -> Option<Arc<SourceInfo>> {
    let broken = format!("[{source}\n,has(1)]");
    let errors = with_large_stack(|| Parser::new().enable_optional_syntax(true).parse(&broken).err())??;
    errors.errors.into_iter().find_map(|error| error.source_info)
}

fn position(source: &str, positions: Option<&SourceInfo>, id: u64) -> (usize, usize) {
    let offset = positions.and_then(|positions| positions.offset_for(id + 1)).map_or(0, |(start, _)| start as usize);
    let before: String = source.chars().take(offset.saturating_sub(1)).collect();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

fn shown(source: &str, mut mistakes: Vec<Mistake>) -> String {
    mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
    let show = |mistake: Mistake| {
        let Mistake { line, column, message } = mistake;
        let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        // Below wide characters stand wide ones.
        let wide = |character: char| character.len_utf8() > 1;
        let before = text.chars().map(Some).chain(std::iter::repeat(None)).take(column.saturating_sub(1));
        let dots: String = before.map(|character| if character.is_some_and(wide) { '．' } else { '.' }).collect();
        let mark = if text.chars().nth(column.saturating_sub(1)).is_some_and(wide) { '＾' } else { '^' };
        format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | {dots}{mark}")
    };
    mistakes.into_iter().map(show).collect::<Vec<_>>().join("\n")
}
