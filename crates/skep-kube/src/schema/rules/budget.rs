//! What rules may cost: steps and time, for each rule, and for all rules of one object.
//!
//! Every turn of a loop asks for its cost, and so do functions whose work grows with what they are given. What cannot be
//! paid for is a failure that no expression can hide, because nothing that follows it can be paid for either.

use std::time::{Duration, Instant};

use kube_cel::cel::common::ast::{EntryExpr, Expr};
use kube_cel::cel::parser::Expression;

use super::value::Failure;

/// What one rule may cost, in steps of about the size of the real server's, and all rules of one object.
const RULE_COST: u64 = 1_000_000;
const OBJECT_COST: u64 = 10_000_000;
/// Steps differ in size, with what they are about. Time does not, but a build that is not optimised needs more of it.
const OBJECT_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 2 });

/// What the rule that is evaluated now has left.
#[derive(Debug)]
pub(super) struct Purse {
    cost: u64,
    until: Instant,
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
    pub(super) fn pay_for<T>(
        &mut self,
        expression: &Expression,
        evaluate: impl FnOnce(&mut Purse) -> T,
    ) -> Result<T, Overdrawn> {
        let mut purse = Purse { cost: RULE_COST, until: self.until, is_overdrawn: false };
        let evaluated = purse.spend(weight(expression)).map(|()| evaluate(&mut purse));
        let left = self.cost.checked_sub(RULE_COST - purse.cost);
        self.cost = left.unwrap_or_default();
        match (evaluated, left) {
            (_, None) => Err(Overdrawn::Object),
            (Ok(value), Some(_)) if !purse.is_overdrawn => Ok(value),
            _ if Instant::now() > self.until => Err(Overdrawn::Object),
            _ => Err(Overdrawn::Rule),
        }
    }
}

impl Purse {
    /// Takes a cost from what the rule has left.
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Failure> {
        let in_time = !self.is_overdrawn && Instant::now() <= self.until;
        let Some(left) = self.cost.checked_sub(cost).filter(|_| in_time) else {
            self.is_overdrawn = true;
            return Err(Failure::told("actual cost limit exceeded"));
        };
        self.cost = left;
        Ok(())
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

/// Visits the parts of an expression that are expressions themselves.
pub(super) fn each_part(expression: &mut Expr, visit: &mut dyn FnMut(&mut Expression)) {
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
