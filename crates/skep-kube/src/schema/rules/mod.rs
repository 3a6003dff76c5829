//! The CEL rules of a schema (`x-kubernetes-validations`): compiled once, then asked about each object.

mod budget;
mod check;
mod compile;
mod conversions;
mod estimate;
mod evaluate;
mod foreign;
mod format;
mod functions;
mod kind;
mod list;
mod list_functions;
mod macros;
mod named_formats;
mod operands;
mod operators;
mod overloads;
mod refusal;
mod texts;
mod times;
mod value;
mod values;
mod words;

pub(super) use compile::{compile_problem, uses_old_self};
pub(super) use estimate::{cost, most};
pub(super) use refusal::steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::cel::parser::Expression;
use serde_json::Value;

use budget::{Budget, Overdrawn};
use evaluate::Evaluation;
use value::Value as Cel;

use super::counterparts::Counterparts;
use super::validate::NO_FIELD;
use super::{Rule, Schema, path};
use crate::status::{FieldError, Problem};

/// Levels of an expression for which the stack of any thread is large enough.
const MAX_COMMON_DEPTH: usize = 32;

/// The rules of a schema, compiled.
#[derive(Debug, Default)]
pub struct CompiledRules {
    root: Node,
    /// Whether some rule has more levels than the stack of a common thread is good for.
    deep: bool,
}

/// The rules at one place, and below.
#[derive(Debug, Default)]
struct Node {
    rules: Vec<CompiledRule>,
    properties: BTreeMap<String, Node>,
    additional_properties: Option<Box<Node>>,
    items: Option<Box<Node>>,
}

#[derive(Debug)]
struct CompiledRule {
    rule: Rule,
    program: Result<Expression, String>,
    message: Option<Expression>,
    uses_old_self: bool,
}

impl CompiledRules {
    pub fn compile(schema: &Schema) -> Self {
        let root = Node::compile(schema);
        let deep = root.depth() > MAX_COMMON_DEPTH;
        Self { root, deep }
    }

    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// What the rules have against a whole object.
    pub fn check(&self, schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = self.run(schema, new, old, true);
        errors
            .iter_mut()
            .filter(|error| error.field.is_empty())
            .for_each(|error| NO_FIELD.clone_into(&mut error.field));
        errors
    }

    /// What the rules have against a value that is not a whole object. Fields are relative to it.
    pub(super) fn check_inside(&self, schema: &Schema, value: &Value) -> Vec<FieldError> {
        self.run(schema, value, None, false)
    }

    fn run(&self, schema: &Schema, new: &Value, old: Option<&Value>, root: bool) -> Vec<FieldError> {
        let run = || {
            let mut inspection = Inspection { budget: Budget::new(), is_over: false, errors: Vec::new() };
            inspection.node(&self.root, schema, new, old, root, "");
            inspection.errors
        };
        if !self.deep {
            return run();
        }
        // Without a thread nothing can be told, and what cannot be told is refused.
        let refusal = || FieldError::new("", Problem::Internal, "the rules could not be evaluated");
        compile::with_large_stack(run).unwrap_or_else(|| vec![refusal()])
    }
}

impl Node {
    fn compile(schema: &Schema) -> Self {
        let boxed = |schema: &Option<Arc<Schema>>| {
            schema.as_ref().map(|schema| Self::compile(schema)).filter(|node| !node.is_empty()).map(Box::new)
        };
        Self {
            rules: schema.rules.iter().map(CompiledRule::compile).collect(),
            properties: schema
                .properties
                .iter()
                .map(|(name, property)| (name.clone(), Self::compile(property)))
                .filter(|(_, node)| !node.is_empty())
                .collect(),
            additional_properties: boxed(&schema.additional_properties),
            items: boxed(&schema.items),
        }
    }

    /// The levels of the deepest expression.
    fn depth(&self) -> usize {
        let own = self.rules.iter().flat_map(|rule| rule.program.iter().chain(&rule.message)).map(compile::depth);
        let inner = self.properties.values().chain(self.additional_properties.as_deref()).chain(self.items.as_deref());
        own.chain(inner.map(Self::depth)).max().unwrap_or_default()
    }

    /// Nodes without rules below them are not kept, so that a look at the node is enough.
    fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.properties.is_empty()
            && self.additional_properties.is_none()
            && self.items.is_none()
    }
}

impl CompiledRule {
    fn compile(rule: &Rule) -> Self {
        let program = compile::parse(&rule.rule)
            .map_err(|mistakes| mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>().join(", "));
        let uses_old_self = program.as_ref().is_ok_and(|program| program.references().has_variable("oldSelf"));
        let message = rule.message_expression.as_deref().and_then(|source| compile::parse(source).ok());
        Self { rule: rule.clone(), program, message, uses_old_self }
    }
}

/// An object under the eyes of its rules.
struct Inspection {
    budget: Budget,
    /// Whether the budget is spent, so that no further rule is evaluated.
    is_over: bool,
    errors: Vec<FieldError>,
}

impl Inspection {
    fn node(&mut self, node: &Node, schema: &Schema, new: &Value, old: Option<&Value>, root: bool, at: &str) {
        // A member that may be null and is has nothing for rules to look at.
        if new.is_null() || self.is_over {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if !node.rules.is_empty() {
            self.rules(&node.rules, schema, new, old, root, at);
        }
        match new {
            Value::Object(members) => {
                let old = old.filter(|_| !schema.atomic_map);
                for (name, member) in members {
                    let old = old.and_then(|old| old.get(name));
                    if let (Some(node), Some(schema)) = (node.properties.get(name), schema.properties.get(name)) {
                        self.node(node, schema, member, old, false, &path::member(at, name));
                    } else if let (Some(node), Some(schema)) =
                        (&node.additional_properties, &schema.additional_properties)
                    {
                        self.node(node, schema, member, old, false, &path::entry(at, name));
                    }
                }
            }
            Value::Array(items) => {
                if let (Some(node), Some(item_schema)) = (&node.items, &schema.items) {
                    let counterparts = Counterparts::of(schema, old);
                    for (index, item) in items.iter().enumerate() {
                        self.node(node, item_schema, item, counterparts.find(item), false, &path::item(at, index));
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        rules: &[CompiledRule],
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
        root: bool,
        at: &str,
    ) {
        let convert = |value: &Value| values::convert(schema, value, root || schema.embedded_resource);
        let own = convert(new);
        let old_self = old.map(convert);
        for rule in rules {
            if rule.uses_old_self && old_self.is_none() && !rule.rule.optional_old_self {
                continue;
            }
            let variables = Variables { own: &own, old: old_self.as_ref(), is_optional: rule.rule.optional_old_self };
            // What was wrong before and has not changed is tolerated, unless the rule is about the change.
            let tolerated = !rule.uses_old_self && old == Some(new);
            match evaluate(rule, &variables, &mut self.budget) {
                Ok(Cel::Bool(true)) => {}
                Ok(Cel::Bool(false)) if tolerated => {}
                Ok(Cel::Bool(false)) => match message(rule, &variables, &mut self.budget) {
                    Ok(message) => self.errors.push(refusal::broken(&rule.rule, schema, new, at, message)),
                    Err(why) => {
                        self.is_over = true;
                        self.errors.push(refusal::too_expensive(&rule.rule, schema, at, why));
                        return;
                    }
                },
                Ok(_) => self.errors.push(refusal::failed(&rule.rule, schema, at, "no such overload")),
                Err(Unevaluated::Failed(error)) => {
                    self.errors.push(refusal::failed(&rule.rule, schema, at, &error));
                }
                Err(Unevaluated::Overdrawn(why)) => {
                    self.is_over = true;
                    self.errors.push(refusal::too_expensive(&rule.rule, schema, at, why));
                    return;
                }
            }
        }
    }
}

/// What an expression can ask about.
struct Variables<'a> {
    own: &'a Cel,
    old: Option<&'a Cel>,
    is_optional: bool,
}

impl Variables<'_> {
    fn all(&self) -> Vec<(&'static str, Cel)> {
        let old =
            if self.is_optional { Some(Cel::Optional(self.old.cloned().map(Box::new))) } else { self.old.cloned() };
        [("self", self.own.clone())].into_iter().chain(old.map(|old| ("oldSelf", old))).collect()
    }
}

/// Why a rule has no value.
enum Unevaluated {
    Failed(String),
    Overdrawn(Overdrawn),
}

fn evaluate(rule: &CompiledRule, variables: &Variables<'_>, budget: &mut Budget) -> Result<Cel, Unevaluated> {
    match &rule.program {
        Ok(program) => budget
            .pay_for(program, |purse| Evaluation::new(variables.all(), purse).value(program))
            .map_err(Unevaluated::Overdrawn)?
            .map_err(|failure| Unevaluated::Failed(failure.to_string())),
        Err(problem) => Err(Unevaluated::Failed(format!("rule compile error: {problem}"))),
    }
}

/// The most that a message made by an expression may hold.
const MAX_MESSAGE: usize = 5120;

/// What a broken rule says: the value of its expression when that is one line, else its text, else the rule itself. An
/// expression that is too expensive leaves the text; one that takes what all rules have left is an error.
fn message(rule: &CompiledRule, variables: &Variables<'_>, budget: &mut Budget) -> Result<String, Overdrawn> {
    if let Some(expression) = &rule.message {
        match budget.pay_for(expression, |purse| Evaluation::new(variables.all(), purse).value(expression)) {
            Ok(Ok(Cel::Text(text))) => {
                let text = text.trim();
                if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') {
                    return Ok(text.to_owned());
                }
            }
            Err(Overdrawn::Object) => return Err(Overdrawn::Object),
            Ok(_) | Err(Overdrawn::Rule) => {}
        }
    }
    Ok(match &rule.rule.message {
        Some(message) if !message.is_empty() => message.trim().to_owned(),
        _ => format!("failed rule: {}", rule.rule.rule.trim()),
    })
}

#[cfg(test)]
mod tests;
