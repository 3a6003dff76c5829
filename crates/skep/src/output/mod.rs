//! Standard output as a stream of data: errors are reported, a reader that went away is not one.

mod table;

pub(crate) use table::Table;

use std::io::{self, Write as _};

use anyhow::Context as _;

/// Writes text to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.context("cannot write to standard output")
}

/// Whether the command failed only because nobody reads its output any more, as in `skep crds | head`.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<io::Error>())
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
