//! The reference pages of the documentation, written from what the program knows about itself.

pub mod cli;
pub mod crds;

/// The first lines of every generated page.
fn heading(title: &str) -> String {
    format!("<!-- Written by `cargo xtask generate`; change the source instead. -->\n\n# {title}\n\n")
}
