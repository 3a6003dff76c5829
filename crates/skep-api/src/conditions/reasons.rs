//! The reasons of conditions.
