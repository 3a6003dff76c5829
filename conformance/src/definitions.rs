//! The CRDs of Skep, on a cluster that has none.

use anyhow::Context as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde_json::Value;

/// Installs every definition as `change` leaves it, and waits until objects can be written.
pub async fn install(client: &Client, change: impl Fn(Value) -> Value) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("test").force();
    for entry in skep_api::crd::ALL {
        let patch = Patch::Apply(change(entry.document()));
        let name = entry.definition.crd_name();
        api.patch(&name, &params, &patch).await.with_context(|| name.clone())?;
    }
    for entry in skep_api::crd::ALL {
        await_condition(api.clone(), &entry.definition.crd_name(), conditions::is_crd_established()).await?;
    }
    Ok(())
}
