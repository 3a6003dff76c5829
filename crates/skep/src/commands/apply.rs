//! `skep apply`.

use anyhow::Context as _;
use kube::ResourceExt as _;

use crate::cli::ApplyArgs;
use crate::connection::{connect, refusal};
use crate::data_folder::DataFolder;
use crate::local::{self, Manifest};
use crate::objects::Place;
use crate::output;

pub(super) async fn run(args: ApplyArgs) -> anyhow::Result<()> {
    let manifests = local::read(&args.filename)?;
    let client = connect(&DataFolder::try_from(args.data)?).await?;
    for Manifest { origin, object } in &manifests {
        let cannot = || format!("cannot apply {origin}");
        let place = Place::find(&client, object, &args.namespace.namespace).await.with_context(cannot)?;
        let before = place.api.get_opt(&place.name).await.map_err(refusal).with_context(cannot)?;
        let after = place.apply(object).await.with_context(cannot)?;
        let outcome = match before {
            None => "created",
            Some(before) if before.resource_version() == after.resource_version() => "unchanged",
            Some(_) => "configured",
        };
        output::print(&format!("{} {outcome}\n", place.title()))?;
    }
    Ok(())
}
