//! Random changes that people make to their objects while an operator has troubles, and what it has made of them in the
//! end: the same as one that never had any, without an orphan, and with everything that others wrote.
//!
//! Whoever uses this runs the operators, and troubles the first one. Everything follows from a seed.

mod examples;
mod kinds;
mod life;
mod marks;
mod outcome;
mod people;
mod place;
mod random;
mod surroundings;
mod twin;
mod workloads;

pub use crate::for_every_kind;
pub use examples::Example;
pub use kinds::{child_kinds, is_ours, own_kinds};
pub use life::Life;
pub use place::Place;
pub use random::Random;
pub use surroundings::{prepare, run_backend};
pub use twin::Twin;
