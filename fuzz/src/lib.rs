//! Fuzz targets: the code that reads what strangers send must survive all of it, in time, and keep its promises.
//!
//! A target is a function of bytes. [`driver`] runs it on mutations of `corpus/<target>` with a stable compiler: some
//! seconds in every test run, hours in `cargo xtask soak fuzz`. `libfuzzer/` runs the same functions under cargo-fuzz,
//! guided by coverage, with a nightly compiler.

pub mod driver;
mod mutate;
mod parts;
mod random;
mod targets;

pub use targets::{TARGETS, Target, find, run};
