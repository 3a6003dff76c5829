//! What an expression comes to.
//!
//! Expressions are those of the parser, evaluated here rather than by its interpreter, which knows neither sets nor
//! two-variable loops, cannot be stopped, and has values where the server has errors.

use std::sync::Arc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators,
};
use kube_cel::cel::parser::Expression;

use super::budget::{Purse, weight};
use super::macros::INSERT;
use super::value::{Entries, Failure, Outcome, Value, member};
use super::{functions, operators as operations};

/// An expression under evaluation.
pub(super) struct Evaluation<'a, 'p> {
    /// The variables in sight, the nearest last. That of a loop may be a failure that a later turn makes up for.
    variables: Vec<(&'a str, Outcome)>,
    purse: &'p mut Purse,
}

impl<'a, 'p> Evaluation<'a, 'p> {
    pub(super) fn new(variables: Vec<(&'a str, Value)>, purse: &'p mut Purse) -> Self {
        Self { variables: variables.into_iter().map(|(name, value)| (name, Ok(value))).collect(), purse }
    }

    pub(super) fn value(&mut self, expression: &'a Expression) -> Outcome {
        match &expression.expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Err(Failure::NoOverload),
        }
    }

    fn variable(&self, name: &str) -> Outcome {
        if let Some((_, value)) = self.variables.iter().rev().find(|(known, _)| *known == name) {
            return value.clone();
        }
        let undeclared = || Failure::told(format!("undeclared reference to '{name}'"));
        functions::type_named(name).map(Value::Type).ok_or_else(undeclared)
    }

    fn is_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| *known == name)
    }

    fn select(&mut self, expression: &'a Expression, select: &'a SelectExpr) -> Outcome {
        if let Some(name) = functions::qualified(expression).and_then(|name| functions::type_named(&name)) {
            return Ok(Value::Type(name));
        }
        let field = select.field.as_str();
        match (self.value(&select.operand)?, select.test) {
            (Value::Map(entries), true) => Ok(member(&entries, field).is_some().into()),
            (Value::Map(entries), false) => {
                member(&entries, field).cloned().ok_or_else(|| Failure::told(format!("no such key: {field}")))
            }
            (optional @ Value::Optional(_), test) => {
                let found = operations::optional_member(optional, field)?;
                Ok(if test { (!matches!(found, Value::Optional(None))).into() } else { found })
            }
            (_, true) => Ok(false.into()),
            (_, false) => Err(Failure::told(format!("no such key: {field}"))),
        }
    }

    fn list(&mut self, list: &'a ListExpr) -> Outcome {
        let mut items = Vec::with_capacity(list.elements.len());
        for (index, element) in list.elements.iter().enumerate() {
            match self.value(element)? {
                Value::Optional(inner) if list.optional_indices.contains(&index) => {
                    items.extend(inner.map(|value| *value));
                }
                value => items.push(value),
            }
        }
        Ok(items.into())
    }

    fn map(&mut self, map: &'a MapExpr) -> Outcome {
        let mut entries = Entries::new();
        for part in &map.entries {
            let EntryExpr::MapEntry(part) = &part.expr else { return Err(Failure::NoOverload) };
            let key = self.value(&part.key)?.key().ok_or(Failure::NoOverload)?;
            let value = match self.value(&part.value)? {
                Value::Optional(inner) if part.optional => inner.map(|value| *value),
                value => Some(value),
            };
            if let Some(value) = value {
                entries.insert(key, value);
            }
        }
        Ok(entries.into())
    }

    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr) -> Outcome {
        let range = self.value(&comprehension.iter_range)?;
        let start = self.value(&comprehension.accu_init)?;
        let known = self.variables.len();
        self.variables.push((&comprehension.accu_var, Ok(start)));
        let outcome = self.turns(comprehension, &range).and_then(|()| self.value(&comprehension.result));
        self.variables.truncate(known);
        outcome
    }

    fn turns(&mut self, comprehension: &'a ComprehensionExpr, range: &Value) -> Result<(), Failure> {
        let cost = weight(&comprehension.loop_cond) + weight(&comprehension.loop_step);
        let two = comprehension.iter_var2.is_some();
        match range {
            Value::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    let (first, second) = if two { (index.into(), Some(item.clone())) } else { (item.clone(), None) };
                    if !self.turn(comprehension, cost, first, second)? {
                        break;
                    }
                }
            }
            Value::Map(entries) => {
                for (key, value) in entries.iter() {
                    if !self.turn(comprehension, cost, Value::of_key(key), two.then(|| value.clone()))? {
                        break;
                    }
                }
            }
            other => {
                let words = format!("got 'types.{}', expected iterable type", other.go_name());
                return Err(Failure::Told(words));
            }
        }
        Ok(())
    }

    /// One turn of a loop. Whether there may be another.
    fn turn(
        &mut self,
        comprehension: &'a ComprehensionExpr,
        cost: u64,
        first: Value,
        second: Option<Value>,
    ) -> Result<bool, Failure> {
        self.purse.spend(cost)?;
        let outside = self.variables.len();
        self.variables.push((&comprehension.iter_var, Ok(first)));
        if let (Some(name), Some(second)) = (&comprehension.iter_var2, second) {
            self.variables.push((name, Ok(second)));
        }
        let goes_on = matches!(self.value(&comprehension.loop_cond)?, Value::Bool(true));
        if goes_on {
            let step = self.value(&comprehension.loop_step);
            self.variables[outside - 1].1 = step;
        }
        self.variables.truncate(outside);
        Ok(goes_on)
    }

    fn call(&mut self, call: &'a CallExpr) -> Outcome {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [condition, one, other]) => match self.value(condition)? {
                Value::Bool(true) => self.value(one),
                Value::Bool(false) => self.value(other),
                _ => Err(Failure::NoOverload),
            },
            (operators::LOGICAL_AND, [one, other]) => self.either(one, other, false),
            (operators::LOGICAL_OR, [one, other]) => self.either(one, other, true),
            (operators::NOT_STRICTLY_FALSE, [one]) => Ok((!matches!(self.value(one), Ok(Value::Bool(false)))).into()),
            (name @ (operators::ADD | INSERT), [first, rest @ ..]) if accumulated(first).is_some() => {
                self.accumulate(name, accumulated(first).unwrap_or_default(), rest)
            }
            (name, arguments) => {
                if let Some(target) = call.target.as_deref() {
                    return self.member_call(name, target, arguments);
                }
                let arguments = self.all(arguments)?;
                operations::apply(name, &arguments, self.purse)
                    .unwrap_or_else(|| functions::call(name, false, &arguments, self.purse))
            }
        }
    }

    fn all(&mut self, expressions: &'a [Expression]) -> Result<Vec<Value>, Failure> {
        expressions.iter().map(|expression| self.value(expression)).collect()
    }

    /// `&&` and `||`: one side may decide, whatever the other is, even a failure.
    fn either(&mut self, one: &'a Expression, other: &'a Expression, decisive: bool) -> Outcome {
        let one = self.value(one);
        if matches!(one, Ok(Value::Bool(flag)) if flag == decisive) {
            return Ok(decisive.into());
        }
        match (one, self.value(other)) {
            (_, Ok(Value::Bool(flag))) if flag == decisive => Ok(decisive.into()),
            (Err(failure), _) | (Ok(Value::Bool(_)), Err(failure)) => Err(failure),
            (Ok(Value::Bool(_)), Ok(Value::Bool(flag))) => Ok(flag.into()),
            _ => Err(Failure::NoOverload),
        }
    }

    /// Adds to what a loop has collected. It is taken out of its variable for that, or each turn would copy all of it;
    /// nothing else in a step asks for it.
    fn accumulate(&mut self, name: &str, variable: &str, rest: &'a [Expression]) -> Outcome {
        let place = self.variables.iter().rposition(|(known, _)| *known == variable).ok_or(Failure::NoOverload)?;
        // The first failure is the one that is told.
        if let (_, Err(failure)) = &self.variables[place] {
            return Err(failure.clone());
        }
        let rest = self.all(rest)?;
        let (_, collected) = &mut self.variables[place];
        let collected = std::mem::replace(collected, Ok(Value::Null))?;
        match (name, rest.as_slice()) {
            (operators::ADD, [other]) => operations::add(collected, other, self.purse),
            (_, [entries]) => operations::insert_all(collected, entries),
            (_, [key, value]) => operations::insert(collected, key, value),
            _ => Err(Failure::NoOverload),
        }
    }

    fn member_call(&mut self, name: &str, target: &'a Expression, arguments: &'a [Expression]) -> Outcome {
        if let Expr::Ident(prefix) = &target.expr
            && !self.is_variable(prefix)
        {
            let name = format!("{prefix}.{name}");
            if functions::is_function(&name) {
                let arguments = self.all(arguments)?;
                return functions::call(&name, false, &arguments, self.purse);
            }
        }
        let on = self.value(target)?;
        // What is not needed is not evaluated.
        if let ("or" | "orValue", Value::Optional(Some(value))) = (name, &on) {
            return Ok(if name == "or" { on } else { (**value).clone() });
        }
        let mut all = vec![on];
        all.extend(self.all(arguments)?);
        functions::call(name, true, &all, self.purse)
    }
}

/// The variable in which a loop collects, when an expression is one. Rules cannot have such names.
fn accumulated(expression: &Expression) -> Option<&str> {
    match &expression.expr {
        Expr::Ident(name) if name.starts_with('@') => Some(name),
        _ => None,
    }
}

pub(super) fn literal_value(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(flag) => Value::Bool(*flag.inner()),
        LiteralValue::Bytes(bytes) => Value::Bytes(Arc::new(bytes.inner().to_vec())),
        LiteralValue::Double(number) => Value::Double(*number.inner()),
        LiteralValue::Int(number) => Value::Int(*number.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(text) => text.inner().into(),
        LiteralValue::UInt(number) => Value::Uint(*number.inner()),
    }
}
