//! The types of expressions, as far as they are needed to find the mistakes that people make: fields that do not exist,
//! names that nobody declared, and operators between things that do not go together.
//!
//! Where a type is not known for sure it is dynamic, and nothing is said. So a rule that the server accepts is never
//! refused here, while some that it refuses pass.

use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators};
use kube_cel::cel::parser::Expression;

use super::super::{Schema, Type, duration, pattern};
use super::functions::is_function;
use super::values::escape;

/// A mistake and where it is, both from one on.
#[derive(Debug, PartialEq)]
pub(crate) struct Mistake {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// The type of an expression.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Dynamic,
    /// One of the types with a name and no parts.
    Named(&'static str),
    Null,
    List(Box<Kind>),
    Map(Box<Kind>),
    Optional(Box<Kind>),
    /// An object with the members of a schema. The flag says that it is a whole one, with a version, kind and name.
    Object(Arc<Schema>, bool),
    /// The `metadata` of a whole object.
    Metadata,
}

use Kind::{Dynamic, List, Map, Metadata, Named, Null, Object, Optional};

const BOOL: Kind = Named("bool");
const INT: Kind = Named("int");
const STRING: Kind = Named("string");
const DURATION: &str = "google.protobuf.Duration";
const TIMESTAMP: &str = "google.protobuf.Timestamp";

/// What stands before the names of functions that belong together.
const NAMESPACES: [&str; 9] = ["base64", "format", "ip", "jsonpatch", "lists", "math", "optional", "sets", "strings"];

const MACROS: [&str; 9] = [
    "all",
    "exists",
    "existsOne",
    "optFlatMap",
    "optMap",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

impl Kind {
    /// The type of the values of a schema. Nothing when rules cannot see them.
    fn of(schema: &Arc<Schema>, whole: bool) -> Option<Self> {
        if schema.int_or_string {
            return Some(Dynamic);
        }
        Some(match schema.type_? {
            Type::Boolean => BOOL,
            Type::Integer => INT,
            Type::Number => Named("double"),
            Type::String => match schema.format.as_deref() {
                Some("byte") => Named("bytes"),
                Some("duration") => Named(DURATION),
                Some("date" | "date-time" | "datetime") => Named(TIMESTAMP),
                _ => STRING,
            },
            Type::Array => List(Box::new(Self::of(schema.items.as_ref()?, false)?)),
            Type::Object => match &schema.additional_properties {
                Some(entries) => Map(Box::new(Self::of(entries, false)?)),
                None => Object(schema.clone(), whole || schema.embedded_resource),
            },
        })
    }

    fn name(&self) -> String {
        match self {
            Dynamic => "dyn".to_owned(),
            Named(name) => (*name).to_owned(),
            Null => "null".to_owned(),
            List(items) => format!("list({})", items.name()),
            Map(entries) => format!("map(string, {})", entries.name()),
            Optional(inner) => format!("optional_type({})", inner.name()),
            Object(..) | Metadata => "object".to_owned(),
        }
    }

    /// Whether a value of this type may be of the named one.
    pub(super) fn may_be(&self, name: &str) -> bool {
        matches!(self, Dynamic) || matches!(self, Named(own) if *own == name)
    }

    fn is_number(&self) -> bool {
        matches!(self, Dynamic | Named("int" | "uint" | "double"))
    }

    /// Whether values of two types can be equal at all.
    fn goes_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Dynamic, _)
            | (_, Dynamic)
            | (Null, Null | Object(..) | Metadata | Optional(_))
            | (Object(..) | Metadata | Optional(_), Null)
            | (Metadata, Metadata) => true,
            (Named(one), Named(other)) => one == other,
            (Null, Named(name)) | (Named(name), Null) => matches!(*name, DURATION | TIMESTAMP),
            (List(one), List(other)) | (Map(one), Map(other)) | (Optional(one), Optional(other)) => {
                one.goes_with(other)
            }
            (Object(one, _), Object(other, _)) => Arc::ptr_eq(one, other) || one == other,
            _ => false,
        }
    }
}

pub(super) struct Checker<'a> {
    variables: Vec<(String, Kind)>,
    locate: &'a dyn Fn(u64) -> (usize, usize),
    pub mistakes: Vec<Mistake>,
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
        Self { variables, locate, mistakes: Vec::new() }
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
            Expr::Select(select) => self.select(expression.id, select),
            Expr::Call(call) => self.call(expression.id, call),
            Expr::List(list) => self.list(&list.elements),
            Expr::Map(map) => {
                let mut kinds = Vec::new();
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.check(&entry.key);
                        kinds.push(self.check(&entry.value));
                    }
                }
                Map(Box::new(common(&kinds)))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Dynamic,
        }
    }

    fn variable(&mut self, id: u64, name: &str) -> Kind {
        if let Some((_, kind)) = self.variables.iter().rev().find(|(known, _)| known == name) {
            return kind.clone();
        }
        let types =
            ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint", "type", "optional_type"];
        if types.contains(&name) {
            return Dynamic;
        }
        self.mistake(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn select(&mut self, id: u64, select: &SelectExpr) -> Kind {
        let operand = self.check(&select.operand);
        let found = self.field(id, &operand, &select.field);
        if select.test { BOOL } else { found }
    }

    fn field(&mut self, id: u64, operand: &Kind, field: &str) -> Kind {
        match operand {
            Dynamic => Dynamic,
            Map(entries) => (**entries).clone(),
            Optional(inner) => Optional(Box::new(self.field(id, inner, field))),
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

    fn list(&mut self, elements: &[Expression]) -> Kind {
        let mut items: Option<Kind> = None;
        for element in elements {
            let kind = self.check(element);
            match &items {
                Some(first) if !first.goes_with(&kind) => {
                    let message = format!("expected type '{}' but found '{}'", first.name(), kind.name());
                    self.mistake(element.id, message);
                }
                Some(_) => {}
                None => items = Some(kind),
            }
        }
        List(Box::new(items.unwrap_or(Dynamic)))
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Kind {
        let item = match self.check(&comprehension.iter_range) {
            List(items) => *items,
            Map(_) | Object(..) => STRING,
            _ => Dynamic,
        };
        let start = self.check(&comprehension.accu_init);
        let known = self.variables.len();
        self.variables.push((comprehension.accu_var.clone(), start));
        self.variables.push((comprehension.iter_var.clone(), item));
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
        if !is_function(name) {
            return self.mistake(id, format!("undeclared reference to '{name}' (in container '')"));
        }
        if name == "size" && kinds.len() == 1 && !has_size(&kinds[0]) {
            return self.no_overload(id, name, &kinds);
        }
        self.literals(name, &call.args);
        result(name)
    }

    fn all(&mut self, expressions: &[Expression]) -> Vec<Kind> {
        expressions.iter().map(|expression| self.check(expression)).collect()
    }

    fn member_call(&mut self, id: u64, name: &str, target: &Expression, arguments: &[Expression]) -> Kind {
        if let Expr::Ident(prefix) = &target.expr
            && !self.variables.iter().any(|(known, _)| known == prefix)
            && (is_function(&format!("{prefix}.{name}")) || NAMESPACES.contains(&prefix.as_str()))
        {
            self.all(arguments);
            return Dynamic;
        }
        let owner = self.check(target);
        // Macros that the interpreter does not know bind names of their own.
        if MACROS.contains(&name) && arguments.len() > 1 {
            return Dynamic;
        }
        if !is_function(name) {
            let kind = self.mistake(id, format!("undeclared reference to '{name}' (in container '')"));
            self.all(arguments);
            return kind;
        }
        let kinds = self.all(arguments);
        let textual = ["startsWith", "endsWith", "contains", "matches"].contains(&name);
        let texts = kinds.iter().all(|kind| kind.may_be("string"));
        let unsized_ = name == "size" && kinds.is_empty() && !has_size(&owner);
        if unsized_ || (textual && (!owner.may_be("string") || !texts)) {
            let names: Vec<String> = kinds.iter().map(Kind::name).collect();
            let applied = format!("{}.({})", owner.name(), names.join(", "));
            return self.mistake(id, format!("found no matching overload for '{name}' applied to '{applied}'"));
        }
        self.literals(name, arguments);
        match (name, owner) {
            ("value" | "orValue", Optional(inner)) => *inner,
            ("hasValue", Optional(_) | Dynamic) => BOOL,
            ("hasValue", other) => {
                let applied = format!("{}.()", other.name());
                self.mistake(id, format!("found no matching overload for 'hasValue' applied to '{applied}'"))
            }
            _ => result(name),
        }
    }

    /// Arguments that stand in the expression are tried at once.
    fn literals(&mut self, function: &str, arguments: &[Expression]) {
        let Some((argument, Expr::Literal(LiteralValue::String(text)))) =
            arguments.last().map(|argument| (argument, &argument.expr))
        else {
            return;
        };
        let text = text.inner();
        let wrong = match function {
            "duration" => duration::parse(text).is_none(),
            "timestamp" => chrono::DateTime::parse_from_rfc3339(text).is_err(),
            "matches" => pattern::compile(text).is_err(),
            _ => false,
        };
        if wrong {
            self.mistake(argument.id, format!("invalid {function} argument"));
        }
    }

    fn operator(&mut self, id: u64, name: &str, call: &CallExpr, kinds: &[Kind]) -> Option<Kind> {
        let fits = match (name, kinds) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => {
                for (argument, kind) in call.args.iter().zip(kinds).filter(|(_, kind)| !kind.may_be("bool")) {
                    self.mistake(argument.id, format!("expected type 'bool' but found '{}'", kind.name()));
                }
                return Some(BOOL);
            }
            (operators::NOT_STRICTLY_FALSE, _) => return Some(BOOL),
            (operators::LOGICAL_NOT, [one]) => one.may_be("bool"),
            (operators::NEGATE, [one]) => one.may_be("int") || one.may_be("double"),
            (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => one.goes_with(other),
            (
                operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS,
                [one, other],
            ) => {
                let ordered = |kind: &Kind| matches!(kind, Dynamic | Named(_));
                ordered(one) && ordered(other) && (one.goes_with(other) || (one.is_number() && other.is_number()))
            }
            (operators::CONDITIONAL, [condition, one, other]) => condition.may_be("bool") && one.goes_with(other),
            (operators::IN, [one, container]) => match container {
                List(items) => one.goes_with(items),
                Map(_) => one.may_be("string"),
                Dynamic => true,
                _ => false,
            },
            (operators::INDEX | operators::OPT_INDEX, [container, index]) => match container {
                List(_) => index.is_number(),
                Map(_) => index.may_be("string"),
                Dynamic | Optional(_) => true,
                _ => false,
            },
            (operators::ADD, [one, other]) => adds(one, other),
            (operators::SUBSTRACT, [one, other]) => subtracts(one, other),
            (operators::MULTIPLY | operators::DIVIDE | operators::MODULO, [one, other]) => {
                one.is_number() && other.is_number() && one.goes_with(other)
            }
            (operators::OPT_SELECT, [operand, _]) => return Some(self.optional_field(id, operand, call)),
            _ => return None,
        };
        if !fits {
            return Some(self.no_overload(id, name, kinds));
        }
        Some(outcome(name, kinds))
    }

    fn optional_field(&mut self, id: u64, operand: &Kind, call: &CallExpr) -> Kind {
        let Some(Expr::Literal(LiteralValue::String(field))) = call.args.get(1).map(|argument| &argument.expr) else {
            return Dynamic;
        };
        match self.field(id, operand, field.inner()) {
            already @ Optional(_) => already,
            other => Optional(Box::new(other)),
        }
    }
}

fn has_size(kind: &Kind) -> bool {
    matches!(kind, Dynamic | List(_) | Map(_) | Named("string" | "bytes"))
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

/// The type of several values, dynamic when they differ.
fn common(kinds: &[Kind]) -> Kind {
    match kinds {
        [first, rest @ ..] if rest.iter().all(|kind| kind.goes_with(first)) => first.clone(),
        _ => Dynamic,
    }
}

fn adds(one: &Kind, other: &Kind) -> bool {
    match (one, other) {
        (Dynamic, _) | (_, Dynamic) => true,
        (Named("bool"), _) | (Named(TIMESTAMP), Named(TIMESTAMP)) => false,
        (Named(DURATION | TIMESTAMP), Named(DURATION | TIMESTAMP)) => true,
        (Named(_), Named(_)) | (List(_), List(_)) => one.goes_with(other),
        _ => false,
    }
}

fn subtracts(one: &Kind, other: &Kind) -> bool {
    match (one, other) {
        (Dynamic, _)
        | (_, Dynamic)
        | (Named(TIMESTAMP), Named(DURATION | TIMESTAMP))
        | (Named(DURATION), Named(DURATION)) => true,
        _ => one.is_number() && one.goes_with(other),
    }
}

/// The type of what an operator makes of arguments that fit.
fn outcome(name: &str, kinds: &[Kind]) -> Kind {
    match (name, kinds) {
        (operators::CONDITIONAL, [_, one, other]) | (operators::ADD, [one, other]) => match (one, other) {
            // The more that is known, the better.
            (List(items), other @ List(_)) if matches!(**items, Dynamic) => other.clone(),
            (Dynamic, _) | (_, Dynamic) => Dynamic,
            (Named(one_name), Named(other_name)) if one_name != other_name => Dynamic,
            (Null, other) => other.clone(),
            (one, _) => one.clone(),
        },
        (operators::SUBSTRACT, [Named(TIMESTAMP) | Dynamic, _]) => Dynamic,
        (
            operators::NEGATE | operators::MULTIPLY | operators::DIVIDE | operators::MODULO | operators::SUBSTRACT,
            [one, ..],
        ) => one.clone(),
        (operators::INDEX, [List(items) | Map(items), _]) => (**items).clone(),
        (operators::INDEX | operators::OPT_INDEX, _) => Dynamic,
        _ => BOOL,
    }
}

/// The type of what a function returns, when it always returns the same.
fn result(name: &str) -> Kind {
    match name {
        "size" | "int" | "indexOf" | "lastIndexOf" | "compareTo" | "getHours" | "getMinutes" | "getSeconds" => INT,
        "startsWith" | "endsWith" | "contains" | "matches" | "isURL" | "isIP" | "isCIDR" | "isQuantity"
        | "isSorted" | "isGreaterThan" | "isLessThan" | "bool" | "hasValue" => BOOL,
        "string" | "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring" | "charAt" | "find" | "join" => {
            STRING
        }
        "split" | "findAll" => List(Box::new(STRING)),
        "duration" => Named(DURATION),
        "timestamp" => Named(TIMESTAMP),
        "double" => Named("double"),
        "uint" => Named("uint"),
        "bytes" => Named("bytes"),
        _ => Dynamic,
    }
}
