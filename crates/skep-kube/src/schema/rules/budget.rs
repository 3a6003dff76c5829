//! What rules may cost: steps and time, for each rule, and for all rules of one object.
//!
//! The interpreter cannot be stopped, so expressions are written such that they stop themselves: every turn of a loop
//! asks for its cost, and so do functions whose work grows faster than what they are given. What cannot be paid for is
//! an error that no expression can hide, because nothing that follows it can be paid for either.

use std::cell::Cell;
use std::time::{Duration, Instant};

use kube_cel::cel::ExecutionError;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators};
use kube_cel::cel::parser::Expression;

/// What one rule may cost, in steps of about the size of the real server's, and all rules of one object.
const RULE_COST: u64 = 1_000_000;
const OBJECT_COST: u64 = 10_000_000;
/// Steps differ in size, with what they are about. Time does not, but a build that is not optimised needs more of it.
const OBJECT_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 2 });

/// The function by which a loop asks for what a turn of it costs. No rule can have such a name in it.
pub(super) const SPEND: &str = "@spend";

thread_local! {
    static PURSE: Cell<Purse> = const { Cell::new(Purse { cost: u64::MAX, until: None, is_overdrawn: false }) };
}

/// What the rule that is evaluated now has left.
#[derive(Debug, Clone, Copy)]
struct Purse {
    cost: u64,
    until: Option<Instant>,
    is_overdrawn: bool,
}

/// Why no further rule is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdrawn {
    /// One rule has cost more than any may.
    Rule,
    /// All of them together.
    Object,
}

/// What the rules of one object have left.
#[derive(Debug)]
pub(super) struct Budget {
    cost: u64,
    until: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { cost: OBJECT_COST, until: Instant::now() + OBJECT_TIME }
    }

    /// Evaluates an expression, which may spend what is left, but no more than one rule may.
    pub(super) fn pay_for<T>(&mut self, expression: &Expression, evaluate: impl FnOnce() -> T) -> Result<T, Overdrawn> {
        PURSE.set(Purse { cost: RULE_COST, until: Some(self.until), is_overdrawn: false });
        let paid = spend(weight(expression));
        let evaluated = paid.map(|()| evaluate());
        let Purse { cost, is_overdrawn, .. } = PURSE.get();
        let left = self.cost.checked_sub(RULE_COST - cost);
        self.cost = left.unwrap_or_default();
        match (evaluated, left) {
            (_, None) => Err(Overdrawn::Object),
            (Ok(value), Some(_)) if !is_overdrawn => Ok(value),
            _ if Instant::now() > self.until => Err(Overdrawn::Object),
            _ => Err(Overdrawn::Rule),
        }
    }
}

/// Takes a cost from what the rule has left.
pub(super) fn spend(cost: u64) -> Result<(), ExecutionError> {
    let mut purse = PURSE.get();
    let in_time = purse.until.is_none_or(|until| Instant::now() <= until);
    match purse.cost.checked_sub(cost).filter(|_| in_time && !purse.is_overdrawn) {
        Some(left) => purse.cost = left,
        None => purse.is_overdrawn = true,
    }
    PURSE.set(purse);
    if purse.is_overdrawn { Err(ExecutionError::function_error(SPEND, "actual cost limit exceeded")) } else { Ok(()) }
}

/// Makes every loop of an expression ask for what each of its turns costs.
pub(super) fn meter(expression: &mut Expression) {
    each_part(&mut expression.expr, &mut |part| meter(part));
    if let Expr::Comprehension(comprehension) = &mut expression.expr {
        let turn = weight(&comprehension.loop_cond) + weight(&comprehension.loop_step);
        let condition = std::mem::take(&mut comprehension.loop_cond);
        let id = condition.id;
        let with_id = |expr| Expression { id, expr };
        let cost = with_id(Expr::Literal(LiteralValue::Int(i64::try_from(turn).unwrap_or(i64::MAX).into())));
        let paid = with_id(Expr::Call(CallExpr { func_name: SPEND.to_owned(), target: None, args: vec![cost] }));
        let never = with_id(Expr::Literal(LiteralValue::Boolean(false.into())));
        let args = vec![paid, condition, never];
        comprehension.loop_cond =
            with_id(Expr::Call(CallExpr { func_name: operators::CONDITIONAL.to_owned(), target: None, args }));
    }
}

/// The steps that evaluating an expression once takes, without the turns of its loops.
pub(super) fn weight(expression: &Expression) -> u64 {
    1 + match &expression.expr {
        Expr::Call(call) => call.target.iter().map(|target| weight(target)).sum::<u64>() + total(&call.args),
        Expr::Select(select) => weight(&select.operand),
        Expr::List(list) => total(&list.elements),
        Expr::Map(map) => map.entries.iter().map(|entry| entry_weight(&entry.expr)).sum(),
        Expr::Comprehension(loop_) => weight(&loop_.iter_range) + weight(&loop_.accu_init) + weight(&loop_.result),
        _ => 0,
    }
}

fn total(expressions: &[Expression]) -> u64 {
    expressions.iter().map(weight).sum()
}

fn entry_weight(entry: &EntryExpr) -> u64 {
    match entry {
        EntryExpr::MapEntry(entry) => weight(&entry.key) + weight(&entry.value),
        EntryExpr::StructField(field) => weight(&field.value),
    }
}

fn each_part(expression: &mut Expr, visit: &mut dyn FnMut(&mut Expression)) {
    match expression {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| visit(target));
            call.args.iter_mut().for_each(visit);
        }
        Expr::Select(select) => visit(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(visit),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                match &mut entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        visit(&mut entry.key);
                        visit(&mut entry.value);
                    }
                    EntryExpr::StructField(field) => visit(&mut field.value),
                }
            }
        }
        Expr::Comprehension(loop_) => {
            visit(&mut loop_.iter_range);
            visit(&mut loop_.accu_init);
            visit(&mut loop_.loop_cond);
            visit(&mut loop_.loop_step);
            visit(&mut loop_.result);
        }
        _ => {}
    }
}
