//! What a rule may come to cost, judged by its schema before there is any object.
//!
//! This counts what makes rules expensive, loops in loops and long texts, and nothing of which the schema does not tell
//! how much there can be. It is for refusing what could never be evaluated in time; the rest is for [`super::budget`].

use std::collections::HashMap;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, Expr, operators};
use kube_cel::cel::parser::Expression;

use super::super::{Schema, Type};
use super::budget::weight;
use super::compile::parse;
use super::values::escape;

/// No object is larger, in bytes.
const MAX_SIZE: u64 = 3 * 1024 * 1024;

/// How many characters are read in one step.
const CHARACTERS: u64 = 10;

/// Functions that read all of the text they are called on.
const READERS: [&str; 9] =
    ["contains", "find", "findAll", "lowerAscii", "matches", "replace", "split", "trim", "upperAscii"];

/// The most that evaluating a rule once may cost.
pub(crate) fn cost(source: &str, schema: &Schema) -> u64 {
    let Ok(expression) = parse(source) else { return 0 };
    let estimate = || {
        let known = Guess { schema: Some(schema), count: None };
        let mut estimate = Estimate { variables: HashMap::from([("self", known), ("oldSelf", known)]) };
        estimate.of(&expression).0
    };
    super::compile::with_large_stack(estimate).unwrap_or_default()
}

/// How many values of a schema one object can hold, as far as its size says.
pub(crate) fn most(schema: &Schema) -> u64 {
    MAX_SIZE / (least_size(schema) + 1)
}

/// How many items or entries a value of a schema can have.
fn most_within(schema: &Schema) -> Option<u64> {
    match (&schema.items, &schema.additional_properties) {
        (Some(items), _) => Some(schema.bounds.max_items.unwrap_or_else(|| most(items))),
        (None, Some(values)) => Some(schema.bounds.max_properties.unwrap_or_else(|| most(values))),
        (None, None) => None,
    }
}

/// The fewest bytes in which a value of a schema can be written.
fn least_size(schema: &Schema) -> u64 {
    match schema.type_ {
        Some(Type::Boolean) => 4,
        Some(Type::Object) => {
            let member = |name: &String| {
                let value = schema.properties.get(name).map_or(1, |property| least_size(property));
                u64::try_from(name.len()).unwrap_or_default() + 4 + value
            };
            2 + schema.required.iter().map(member).sum::<u64>()
        }
        Some(Type::Array | Type::String) => 2,
        _ => 1,
    }
}

/// What is known about a value.
#[derive(Debug, Clone, Copy, Default)]
struct Guess<'a> {
    schema: Option<&'a Schema>,
    /// How many items it has at most, where the schema does not tell.
    count: Option<u64>,
}

impl Guess<'_> {
    fn items(self) -> Option<u64> {
        self.count.or_else(|| most_within(self.schema?))
    }

    fn item(self) -> Self {
        let schema = self.schema.filter(|_| self.count.is_none());
        Self { schema: schema.and_then(|schema| schema.items.as_deref()), count: None }
    }

    fn member(self, name: &str) -> Self {
        let known = self.schema.and_then(|schema| {
            let property =
                schema.properties.iter().find(|(known, _)| escape(known) == name).map(|(_, property)| property);
            property.or(schema.additional_properties.as_ref()).map(AsRef::as_ref)
        });
        Self { schema: known, count: None }
    }

    /// How many steps reading all of a text takes.
    fn reading(self) -> u64 {
        let text = self.schema.filter(|schema| schema.type_ == Some(Type::String));
        text.map_or(0, |schema| schema.bounds.max_length.unwrap_or(MAX_SIZE) / CHARACTERS)
    }
}

struct Estimate<'a> {
    variables: HashMap<&'a str, Guess<'a>>,
}

impl<'a> Estimate<'a> {
    fn of(&mut self, expression: &'a Expression) -> (u64, Guess<'a>) {
        match &expression.expr {
            Expr::Ident(name) => (1, self.variables.get(name.as_str()).copied().unwrap_or_default()),
            Expr::Select(select) => {
                let (cost, operand) = self.of(&select.operand);
                (cost.saturating_add(1), operand.member(&select.field))
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.turns(comprehension),
            Expr::List(list) => {
                let cost = self.all(&list.elements);
                (cost.saturating_add(1), Guess { schema: None, count: u64::try_from(list.elements.len()).ok() })
            }
            _ => (weight(expression), Guess::default()),
        }
    }

    fn all(&mut self, expressions: &'a [Expression]) -> u64 {
        expressions.iter().map(|expression| self.of(expression).0).fold(0, u64::saturating_add)
    }

    fn call(&mut self, call: &'a CallExpr) -> (u64, Guess<'a>) {
        let (on, target) = call.target.as_deref().map(|target| self.of(target)).unwrap_or_default();
        let mut cost = self.all(&call.args).saturating_add(on).saturating_add(1);
        if READERS.contains(&call.func_name.as_str()) {
            cost = cost.saturating_add(target.reading());
        }
        let guess = match call.args.as_slice() {
            [of, _] if call.func_name == operators::INDEX => {
                let (_, of) = self.of(of);
                let value = of.schema.and_then(|schema| schema.additional_properties.as_deref());
                if value.is_some() { Guess { schema: value, count: None } } else { of.item() }
            }
            _ => Guess::default(),
        };
        (cost, guess)
    }

    fn turns(&mut self, comprehension: &'a ComprehensionExpr) -> (u64, Guess<'a>) {
        let (range_cost, range) = self.of(&comprehension.iter_range);
        let turns = range.items();
        let outer = self.variables.clone();
        self.variables.insert(&comprehension.iter_var, range.item());
        self.variables.insert(&comprehension.accu_var, Guess::default());
        let turn = self.of(&comprehension.loop_cond).0.saturating_add(self.of(&comprehension.loop_step).0);
        let ends = self.of(&comprehension.accu_init).0.saturating_add(self.of(&comprehension.result).0);
        self.variables = outer;
        let cost = turn.saturating_mul(turns.unwrap_or(1)).saturating_add(range_cost).saturating_add(ends);
        // What a loop collects has no more items than it has turns.
        let collects = matches!(comprehension.accu_init.expr, Expr::List(_));
        (cost, Guess { schema: None, count: turns.filter(|_| collects) })
    }
}
