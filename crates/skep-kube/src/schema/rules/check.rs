//! Whether an expression fits its schema: fields that do not exist, names that nobody declared, functions and operators
//! that do not take what they are given.
//!
//! Where a type is not known for sure it is dynamic, and nothing is said.

use std::sync::Arc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators,
};
use kube_cel::cel::parser::Expression;

use super::super::{Schema, pattern};
use super::evaluate::literal_value;
use super::functions::{qualified, type_named};
use super::kind::Kind::{self, Dynamic, List, Map, Metadata, Named, Null, Object, Optional};
use super::kind::{BOOL, INT, STRING};
use super::macros::INSERT;
use super::operands::{self, Known};
use super::value::Value;
use super::values::escape;
use super::{conversions, format, overloads};

/// A mistake and where it is, both from one on.
#[derive(Debug, PartialEq)]
pub(crate) struct Mistake {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

pub(super) struct Checker<'a> {
    variables: Vec<(String, Kind)>,
    locate: &'a dyn Fn(u64) -> (usize, usize),
    pub mistakes: Vec<Mistake>,
    /// Whether the part that is checked is to be formatted.
    formats: bool,
    /// Why something that does not depend on any object cannot be evaluated.
    pub unfit: Option<String>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(
        schema: &Schema,
        whole: bool,
        optional_old_self: bool,
        locate: &'a dyn Fn(u64) -> (usize, usize),
    ) -> Self {
        let own = Kind::of(&Arc::new(schema.clone()), whole).unwrap_or(Dynamic);
        let old = if optional_old_self { Optional(Box::new(own.clone())) } else { own.clone() };
        let variables = vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)];
        Self { variables, locate, mistakes: Vec::new(), formats: false, unfit: None }
    }

    fn mistake(&mut self, id: u64, message: String) -> Kind {
        let (line, column) = (self.locate)(id);
        self.mistakes.push(Mistake { line, column, message });
        Dynamic
    }

    fn no_overload(&mut self, id: u64, function: &str, arguments: &[Kind]) -> Kind {
        // An empty list has the type of the other one.
        let list = arguments.iter().find(|kind| matches!(kind, List(items) if !matches!(**items, Dynamic)));
        let name = |kind: &Kind| match (kind, list) {
            (List(items), Some(list)) if matches!(**items, Dynamic) => list.name(),
            _ => kind.name(),
        };
        let names: Vec<String> = arguments.iter().map(name).collect();
        let names = names.join(", ");
        self.mistake(id, format!("found no matching overload for '{function}' applied to '({names})'"))
    }

    pub(super) fn check(&mut self, expression: &Expression) -> Kind {
        match &expression.expr {
            Expr::Literal(literal) => literal_kind(literal),
            Expr::Ident(name) => self.variable(expression.id, name),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(object) => self.undeclared(expression.id, &object.type_name),
            Expr::Unspecified => Dynamic,
        }
    }

    fn is_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == name)
    }

    fn variable(&mut self, id: u64, name: &str) -> Kind {
        if let Some((_, kind)) = self.variables.iter().rev().find(|(known, _)| known == name) {
            return kind.clone();
        }
        match type_named(name) {
            Some(_) => Kind::Type(Box::new(Dynamic)),
            None => self.undeclared(id, name),
        }
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Kind {
        self.mistake(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn select(&mut self, expression: &Expression, select: &SelectExpr) -> Kind {
        if qualified(expression).is_some_and(|name| type_named(&name).is_some()) {
            return Kind::Type(Box::new(Dynamic));
        }
        let operand = self.check(&select.operand);
        let found = self.field(expression.id, &operand, &select.field);
        if select.test { BOOL } else { found }
    }

    fn field(&mut self, id: u64, operand: &Kind, field: &str) -> Kind {
        match operand {
            Dynamic => Dynamic,
            Map(_, values) => (**values).clone(),
            Optional(inner) => Kind::optional(self.field(id, inner, field)),
            Metadata if matches!(field, "name" | "generateName") => STRING,
            Object(_, true) if matches!(field, "apiVersion" | "kind") => STRING,
            Object(_, true) if field == "metadata" => Metadata,
            Object(schema, _) => {
                let property = schema.properties.iter().find(|(name, _)| escape(name) == field);
                match property.and_then(|(_, property)| Kind::of(property, false)) {
                    Some(kind) => kind,
                    None => self.mistake(id, format!("undefined field '{field}'")),
                }
            }
            Metadata => self.mistake(id, format!("undefined field '{field}'")),
            other => self.mistake(id, format!("type '{}' does not support field selection", other.name())),
        }
    }

    fn list(&mut self, list: &ListExpr) -> Kind {
        let mut items: Option<Kind> = None;
        for (index, element) in list.elements.iter().enumerate() {
            let kind = match self.check(element) {
                Optional(inner) if list.optional_indices.contains(&index) => *inner,
                kind => kind,
            };
            items = Some(self.same(items, kind, element.id));
        }
        Kind::list(items.unwrap_or(Dynamic))
    }

    fn map(&mut self, map: &MapExpr) -> Kind {
        let (mut keys, mut values): (Option<Kind>, Option<Kind>) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.check(&entry.key);
            keys = Some(self.same(keys, key, entry.key.id));
            let value = match self.check(&entry.value) {
                Optional(inner) if entry.optional => *inner,
                kind => kind,
            };
            values = Some(self.same(values, value, entry.value.id));
        }
        Kind::map(keys.unwrap_or(Dynamic), values.unwrap_or(Dynamic))
    }

    /// The type of several parts, of which one more is known now. They have one type, unless they are formatted.
    fn same(&mut self, others: Option<Kind>, kind: Kind, id: u64) -> Kind {
        match others {
            None => kind,
            Some(others) if others.goes_with(&kind) => others,
            Some(_) if self.formats => Dynamic,
            Some(others) => {
                let message = format!("expected type '{}' but found '{}'", others.name(), kind.name());
                self.mistake(id, message);
                others
            }
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Kind {
        let two = comprehension.iter_var2.is_some();
        let (first, second) = match self.check(&comprehension.iter_range) {
            List(items) if two => (INT, *items),
            List(items) => (*items, Dynamic),
            Map(keys, values) => (*keys, *values),
            Dynamic => (Dynamic, Dynamic),
            other => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    other.name()
                );
                self.mistake(comprehension.iter_range.id, message);
                (Dynamic, Dynamic)
            }
        };
        let start = self.check(&comprehension.accu_init);
        let known = self.variables.len();
        self.variables.push((comprehension.accu_var.clone(), start));
        self.variables.push((comprehension.iter_var.clone(), first));
        if let Some(name) = &comprehension.iter_var2 {
            self.variables.push((name.clone(), second));
        }
        self.check(&comprehension.loop_cond);
        let step = self.check(&comprehension.loop_step);
        self.variables.truncate(known);
        self.variables.push((comprehension.accu_var.clone(), step));
        let result = self.check(&comprehension.result);
        self.variables.truncate(known);
        result
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Kind {
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            return self.member_call(id, name, target, &call.args);
        }
        let kinds = self.all(&call.args);
        if let Some(kind) = self.operator(id, name, call, &kinds) {
            return kind;
        }
        self.function(id, name, &call.args, &kinds)
    }

    fn all(&mut self, expressions: &[Expression]) -> Vec<Kind> {
        expressions.iter().map(|expression| self.check(expression)).collect()
    }

    fn function(&mut self, id: u64, name: &str, arguments: &[Expression], kinds: &[Kind]) -> Kind {
        if !overloads::exists(name) {
            return self.undeclared(id, name);
        }
        let Some(result) = overloads::result(name, false, kinds) else {
            return self.no_overload(id, name, kinds);
        };
        self.literals(name, arguments);
        result
    }

    fn member_call(&mut self, id: u64, name: &str, target: &Expression, arguments: &[Expression]) -> Kind {
        if let Some(prefix) = qualified(target).filter(|prefix| !self.is_variable(prefix)) {
            let name = format!("{prefix}.{name}");
            if overloads::exists(&name) {
                let kinds = self.all(arguments);
                return self.function(id, &name, arguments, &kinds);
            }
        }
        let mut kinds = vec![self.check(target)];
        match arguments {
            [Expression { expr: Expr::List(list), .. }] if name == "format" => {
                let around = std::mem::replace(&mut self.formats, true);
                kinds.push(self.list(list));
                self.format(id, target, list);
                self.formats = around;
            }
            _ => kinds.extend(self.all(arguments)),
        }
        if !overloads::exists(name) {
            return self.undeclared(id, name);
        }
        let Some(result) = overloads::result(name, true, &kinds) else {
            let names: Vec<String> = kinds[1..].iter().map(Kind::name).collect();
            let applied = format!("{}.({})", kinds[0].name(), names.join(", "));
            return self.mistake(id, format!("found no matching overload for '{name}' applied to '{applied}'"));
        };
        self.literals(name, arguments);
        result
    }

    /// Arguments that stand in the expression are tried at once.
    fn literals(&mut self, function: &str, arguments: &[Expression]) {
        for argument in arguments {
            let Expr::Literal(literal) = &argument.expr else { continue };
            let value = literal_value(literal);
            match (function, &value) {
                ("duration" | "timestamp", _) if arguments.len() == 1 => {
                    if let Some(Err(_)) = conversions::call(function, &[value]) {
                        self.mistake(argument.id, format!("invalid {function} argument"));
                    }
                }
                ("matches", Value::Text(text)) if pattern::compile(text).is_err() => {
                    self.mistake(argument.id, "invalid matches argument".to_owned());
                }
                ("find" | "findAll", Value::Text(text)) => {
                    self.unfit = self.unfit.take().or(pattern::compile(text).err());
                }
                _ if arguments.len() == 1 => {
                    let tried = conversions::call(function, &[value]).and_then(Result::err);
                    self.unfit = self.unfit.take().or(tried.map(|failure| failure.to_string()));
                }
                _ => {}
            }
        }
    }

    /// A template that stands in the expression is tried on the types of what stands in it, too.
    fn format(&mut self, id: u64, template: &Expression, list: &ListExpr) {
        let Expr::Literal(LiteralValue::String(template)) = &template.expr else { return };
        let (mistakes, known) = (self.mistakes.len(), self.unfit.clone());
        let kinds = self.all(&list.elements);
        // They have been checked before.
        self.mistakes.truncate(mistakes);
        self.unfit = known;
        if let Err((place, problem)) = format::check(template.inner(), &kinds) {
            let id = place.and_then(|place| list.elements.get(place)).map_or(id, |element| element.id);
            self.mistake(id, problem);
        }
    }

    fn operator(&mut self, id: u64, name: &str, call: &CallExpr, kinds: &[Kind]) -> Option<Kind> {
        match (name, kinds) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => {
                for (argument, kind) in call.args.iter().zip(kinds).filter(|(_, kind)| !kind.may_be("bool")) {
                    self.mistake(argument.id, format!("expected type 'bool' but found '{}'", kind.name()));
                }
                Some(BOOL)
            }
            (operators::OPT_SELECT, [operand, _]) => Some(self.optional_field(id, operand, call)),
            (INSERT, [_, entries]) => Some(entries.clone()),
            (INSERT, [_, key, value]) => Some(Kind::map(key.clone(), value.clone())),
            _ => match operands::known(name, kinds) {
                Known::Result(kind) => Some(kind),
                Known::Unfit => Some(self.no_overload(id, name, kinds)),
                Known::Nothing => None,
            },
        }
    }

    fn optional_field(&mut self, id: u64, operand: &Kind, call: &CallExpr) -> Kind {
        let Some(Expr::Literal(LiteralValue::String(field))) = call.args.get(1).map(|argument| &argument.expr) else {
            return Dynamic;
        };
        match self.field(id, operand, field.inner()) {
            already @ Optional(_) => already,
            other => Kind::optional(other),
        }
    }
}

fn literal_kind(literal: &LiteralValue) -> Kind {
    match literal {
        LiteralValue::Boolean(_) => BOOL,
        LiteralValue::Bytes(_) => Named("bytes"),
        LiteralValue::Double(_) => Named("double"),
        LiteralValue::Int(_) => INT,
        LiteralValue::Null => Null,
        LiteralValue::String(_) => STRING,
        LiteralValue::UInt(_) => Named("uint"),
    }
}
