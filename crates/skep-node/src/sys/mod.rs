//! The calls that have no safe form elsewhere. The only module of the workspace with `unsafe` in it
//! (`docs/adr/0005-one-module-may-be-unsafe.md`).
#![allow(unsafe_code, reason = "this module exists to contain it; each block says why it is sound")]

mod clone;
mod descriptor;
mod fork;
mod mount;
mod namespace;
mod pollable;
mod signal;

pub(crate) use clone::{Helper, Namespaces, start_helper};
pub(crate) use descriptor::{HELPER_CHANNEL, close_on_exec_from, take_inherited};
pub(crate) use fork::{Fork, fork_alone};
pub(crate) use mount::make_read_only;
pub(crate) use namespace::{new_network_namespace, new_user_namespace};
pub(crate) use pollable::Pollable;
pub(crate) use signal::{Arrivals, reset_all};

use std::io;

/// The usual answer of a C function: -1 means that `errno` says why.
fn check<T: From<i8> + PartialEq>(answer: T) -> io::Result<T> {
    if answer == T::from(-1) { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
