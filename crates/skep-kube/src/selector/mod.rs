//! Selectors: which objects of a list are meant, by their labels and by some of their fields.

mod fields;
mod labels;
mod lexer;
mod object;
mod supported;

#[cfg(test)]
mod tests;

pub use fields::{FieldOperator, FieldRequirement, FieldSelector, FieldSelectorError};
pub use labels::{LabelSelector, LabelSelectorError, Operator, Requirement};
pub use object::validate_label_selector;
pub use supported::FieldSupport;
