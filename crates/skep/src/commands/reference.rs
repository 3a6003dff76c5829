//! `skep reference`, behind `cargo xtask generate`.

use anyhow::ensure;

use crate::cli::ReferenceArgs;
use crate::reference;

pub(super) fn run(args: &ReferenceArgs) -> anyhow::Result<()> {
    let stale = if args.check { reference::stale(&args.root)? } else { reference::write(&args.root)? };
    let verb = if args.check { "out of date" } else { "written" };
    for path in &stale {
        eprintln!("{verb}: {}", path.display());
    }
    ensure!(!args.check || stale.is_empty(), "generated files are out of date; run cargo xtask generate");
    Ok(())
}
