//! `skep version`.

use serde_json::json;
use skep_api::kind::{GROUP, V1ALPHA1, V1BETA1};

use crate::cli::TextFormat;
use crate::output;

pub(super) fn run(format: TextFormat) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    match format {
        TextFormat::Text => output::print(&format!("skep {version}\n")),
        TextFormat::Json => {
            let document = json!({
                "name": "skep",
                "version": version,
                "apiVersions": [format!("{GROUP}/{V1BETA1}"), format!("{GROUP}/{V1ALPHA1}")],
            });
            output::print(&format!("{document:#}\n"))
        }
    }
}
