//! `skep status`.

use std::fmt::Write as _;

use crate::cli::{StatusArgs, StatusFormat};
use crate::connection::{connect, refusal};
use crate::data_folder::DataFolder;
use crate::endpoint::{self, Endpoint, Observed};
use crate::output::{self, Table};

pub(super) async fn run(args: StatusArgs) -> anyhow::Result<()> {
    let folder = DataFolder::try_from(args.data)?;
    let client = connect(&folder).await?;
    let observed = Observed::now(&client).await.map_err(refusal)?;
    let endpoints = endpoint::ask_all(endpoint::endpoints(&observed)).await;
    if endpoints.is_empty() && matches!(args.output, StatusFormat::Table | StatusFormat::Wide) {
        eprintln!(
            "no endpoints: apply manifests with {}; a new data folder gets a demo server from skep up",
            folder.command("apply -f FILE")
        );
        return Ok(());
    }
    output::print(&match args.output {
        StatusFormat::Table => table(&endpoints, false),
        StatusFormat::Wide => table(&endpoints, true),
        StatusFormat::Json => serde_json::to_string_pretty(&endpoints)? + "\n",
        StatusFormat::Client => format!("{:#}\n", endpoint::client_settings(&endpoints)),
    })
}

/// The endpoints for people. What keeps an endpoint from being ready is a line of its own below.
pub(super) fn table(endpoints: &[Endpoint], wide: bool) -> String {
    let mut table =
        Table::new(["NAMESPACE", "NAME", "KIND", "TRANSPORT", "PHASE", "READY", "URL", "CLUSTER URL", "TOOLS"]);
    for endpoint in endpoints {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            endpoint.namespace.clone(),
            endpoint.name.clone(),
            endpoint.kind.clone(),
            text(&endpoint.transport),
            endpoint.phase.clone(),
            endpoint.ready.to_string(),
            text(&endpoint.local_url),
            text(&endpoint.url),
            endpoint.tools.as_ref().map_or_else(|| "-".to_owned(), |tools| tools.len().to_string()),
        ]);
    }
    let mut text = if wide { table } else { table.without(&["TRANSPORT", "READY", "CLUSTER URL"]) }.text();
    for endpoint in endpoints {
        if let Some(message) = &endpoint.message {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{}: {message}\n", endpoint.full_name());
        }
    }
    text
}
