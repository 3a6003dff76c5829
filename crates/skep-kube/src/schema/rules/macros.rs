//! The macros that the parser does not know: loops with two variables, what is done with an optional value, and sorting
//! by a key.

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, MapExpr, operators};
use kube_cel::cel::parser::Expression;

use super::budget::each_part;

/// The function by which a loop puts an entry, or all entries of a map, into the map that it makes.
pub(super) const INSERT: &str = "@insert";

/// The function that sorts a list by the keys of another one.
pub(super) const SORT_BY: &str = "@sortByAssociatedKeys";

const NO_NAME: &str = "argument must be a simple name";

/// What a loop collects, and what a macro is called on. Both have names that no rule can have.
const RESULT: &str = "@result";
const TARGET: &str = "@target";

/// A macro that is used wrongly: the part of the expression, and what is wrong.
pub(super) type Misuse = (u64, String);

/// Writes macros as what they stand for, innermost first.
pub(super) fn expand(expression: &mut Expression) -> Result<(), Misuse> {
    let mut outcome = Ok(());
    each_part(&mut expression.expr, &mut |part| {
        if outcome.is_ok() {
            outcome = expand(part);
        }
    });
    outcome?;
    let part = Part { id: expression.id };
    let Expr::Call(CallExpr { func_name, target: Some(target), args }) = &expression.expr else {
        return Ok(());
    };
    let expanded = match (func_name.as_str(), args.as_slice()) {
        ("all", [_, _, condition]) => {
            let step = part.call(operators::LOGICAL_AND, [part.result(), condition.clone()]);
            let goes_on = part.call(operators::NOT_STRICTLY_FALSE, [part.result()]);
            part.fold(target, args, part.flag(true), goes_on, step, part.result())?
        }
        ("exists", [_, _, condition]) => {
            let step = part.call(operators::LOGICAL_OR, [part.result(), condition.clone()]);
            let undecided = part.call(operators::LOGICAL_NOT, [part.result()]);
            let goes_on = part.call(operators::NOT_STRICTLY_FALSE, [undecided]);
            part.fold(target, args, part.flag(false), goes_on, step, part.result())?
        }
        ("existsOne" | "exists_one", [_, _, condition]) => {
            let more = part.call(operators::ADD, [part.result(), part.number(1)]);
            let step = part.call(operators::CONDITIONAL, [condition.clone(), more, part.result()]);
            let one = part.call(operators::EQUALS, [part.result(), part.number(1)]);
            part.fold(target, args, part.number(0), part.flag(true), step, one)?
        }
        ("transformList", [_, _, middle @ .., value]) if middle.len() < 2 => {
            let item = part.with(Expr::List(ListExpr::new(vec![value.clone()])));
            let step = part.call(operators::ADD, [part.result(), item]);
            let start = part.with(Expr::List(ListExpr::default()));
            part.fold(target, args, start, part.flag(true), part.filtered(middle, step), part.result())?
        }
        ("transformMap", [key, _, middle @ .., value]) if middle.len() < 2 => {
            let step = part.call(INSERT, [part.result(), key.clone(), value.clone()]);
            let start = part.with(Expr::Map(MapExpr::default()));
            part.fold(target, args, start, part.flag(true), part.filtered(middle, step), part.result())?
        }
        ("transformMapEntry", [_, _, middle @ .., entry]) if middle.len() < 2 => {
            let step = part.call(INSERT, [part.result(), entry.clone()]);
            let start = part.with(Expr::Map(MapExpr::default()));
            part.fold(target, args, start, part.flag(true), part.filtered(middle, step), part.result())?
        }
        ("optMap", [variable, value]) => {
            let mapped = part.function("optional", "of", vec![part.bound(variable, value)?]);
            part.if_present(target, mapped)
        }
        ("optFlatMap", [variable, value]) => part.if_present(target, part.bound(variable, value)?),
        ("sortBy", [variable, key]) => {
            let item = part.with(Expr::List(ListExpr::new(vec![key.clone()])));
            let step = part.call(operators::ADD, [part.result(), item]);
            let (list, start) = (part.variable(TARGET), part.with(Expr::List(ListExpr::default())));
            let keys = part.comprehension(&list, variable, None, start, part.flag(true), step, part.result())?;
            part.bind(TARGET, (**target).clone(), part.method(SORT_BY, vec![keys]))
        }
        _ => return Ok(()),
    };
    *expression = expanded;
    Ok(())
}

/// Makes parts of expressions, all of which stand where the macro stands.
#[derive(Clone, Copy)]
struct Part {
    id: u64,
}

impl Part {
    fn with(self, expr: Expr) -> Expression {
        Expression { id: self.id, expr }
    }

    fn variable(self, name: &str) -> Expression {
        self.with(Expr::Ident(name.to_owned()))
    }

    fn result(self) -> Expression {
        self.variable(RESULT)
    }

    fn flag(self, flag: bool) -> Expression {
        self.with(Expr::Literal(LiteralValue::Boolean(flag.into())))
    }

    fn number(self, number: i64) -> Expression {
        self.with(Expr::Literal(LiteralValue::Int(number.into())))
    }

    fn call<const N: usize>(self, name: &str, arguments: [Expression; N]) -> Expression {
        self.with(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args: arguments.into() }))
    }

    fn function(self, namespace: &str, name: &str, args: Vec<Expression>) -> Expression {
        let target = Some(Box::new(self.variable(namespace)));
        self.with(Expr::Call(CallExpr { func_name: name.to_owned(), target, args }))
    }

    /// What a method of the macro's target returns.
    fn method(self, name: &str, args: Vec<Expression>) -> Expression {
        let target = Some(Box::new(self.variable(TARGET)));
        self.with(Expr::Call(CallExpr { func_name: name.to_owned(), target, args }))
    }

    /// A step that is taken only where a condition holds.
    fn filtered(self, condition: &[Expression], step: Expression) -> Expression {
        match condition {
            [condition, ..] => self.call(operators::CONDITIONAL, [condition.clone(), step, self.result()]),
            [] => step,
        }
    }

    /// A loop over the places and values of a list, or the keys and values of a map.
    fn fold(
        self,
        range: &Expression,
        arguments: &[Expression],
        start: Expression,
        goes_on: Expression,
        step: Expression,
        result: Expression,
    ) -> Result<Expression, Misuse> {
        match arguments {
            [first, second, ..] => self.comprehension(range, first, Some(second), start, goes_on, step, result),
            _ => Err((self.id, NO_NAME.to_owned())),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a loop")]
    fn comprehension(
        self,
        range: &Expression,
        first: &Expression,
        second: Option<&Expression>,
        start: Expression,
        goes_on: Expression,
        step: Expression,
        result: Expression,
    ) -> Result<Expression, Misuse> {
        let (iter_var, iter_var2) = (name(first)?, second.map(name).transpose()?);
        if let Some(second) = second.filter(|_| iter_var2.as_ref() == Some(&iter_var)) {
            return Err((second.id, format!("duplicate variable name: {iter_var}")));
        }
        Ok(self.with(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: range.clone(),
            iter_var,
            iter_var2,
            accu_var: RESULT.to_owned(),
            accu_init: start,
            loop_cond: goes_on,
            loop_step: step,
            result,
        }))))
    }

    /// An expression in which a name stands for a value: a loop without turns.
    fn bind(self, name: &str, value: Expression, expression: Expression) -> Expression {
        self.with(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: self.with(Expr::List(ListExpr::default())),
            iter_var: "@unused".to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond: self.flag(false),
            loop_step: self.variable(name),
            result: expression,
        })))
    }

    /// An expression about the value of the macro's target.
    fn bound(self, variable: &Expression, expression: &Expression) -> Result<Expression, Misuse> {
        Ok(self.bind(&name(variable)?, self.method("value", Vec::new()), expression.clone()))
    }

    /// An expression about the value of an optional one, where it has one.
    fn if_present(self, optional: &Expression, present: Expression) -> Expression {
        let none = self.function("optional", "none", Vec::new());
        let choice = self.call(operators::CONDITIONAL, [self.method("hasValue", Vec::new()), present, none]);
        self.bind(TARGET, optional.clone(), choice)
    }
}

fn name(expression: &Expression) -> Result<String, Misuse> {
    match &expression.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err((expression.id, NO_NAME.to_owned())),
    }
}
