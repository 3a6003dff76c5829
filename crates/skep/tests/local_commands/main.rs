//! The commands around `skep up`, as a person or a script meets them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod again;
mod doctor;
mod here;
mod life;
mod objects;
mod own_images;
mod ranges;
mod several;
mod terminal;
mod urls;
