//! Writes an object unless a newer proxy has written it already.
//!
//! Between a look at an object and a write of it another proxy may write. So every write says which version it was made
//! for, and when that is not the last one any more, the API server refuses it and we look again:
//!
//! | what is there | what is sent |
//! |---|---|
//! | nothing | a create, which fails when there is something by now |
//! | something of an older or equal generation, or of none | an apply with the resourceVersion that was seen |
//! | something of a newer generation | nothing |

use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::kind::{GROUP, Kind as _};
use skep_api::kinds::MCPServer;
use skep_api::names::annotations::{KUBECTL_RESTARTED_AT, MCP_SERVER_GENERATION};
use skep_api::names::field_managers::PROXY_RUNNER;

use super::RunnerError;
use super::generation::is_overtaken;
use crate::write::take_over::taken_over;

/// How long others may be in the way.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long to wait before another look.
const PAUSE: Duration = Duration::from_millis(50);

/// What a StatefulSet keeps for good: one of another operator has it as that one wanted.
const UNCHANGEABLE: &str = "podManagementPolicy";

/// What became of a write.
#[derive(Debug)]
pub(super) enum Put {
    /// The object is what we said.
    Written(DynamicObject),
    /// It is what a newer proxy said.
    Overtaken(DynamicObject),
}

/// Why there has to be another look.
enum Setback {
    Retry(String),
    Failed(RunnerError),
}

/// Makes an object what `desired` says, for a proxy of a generation.
pub(super) async fn put(api: &Api<DynamicObject>, desired: &Value, generation: i64) -> Result<Put, RunnerError> {
    let text = |member: &Value| member.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&desired["kind"]), text(&desired["metadata"]["name"]));
    let begun = Instant::now();
    loop {
        match attempt(api, &name, desired, generation).await {
            Ok(put) => return Ok(put),
            Err(Setback::Failed(error)) => return Err(error),
            Err(Setback::Retry(cause)) if begun.elapsed() > PATIENCE => {
                return Err(RunnerError::Busy { kind, name, waited: PATIENCE, cause });
            }
            Err(Setback::Retry(cause)) => tracing::debug!(kind, name, cause, "looking again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn attempt(api: &Api<DynamicObject>, name: &str, desired: &Value, generation: i64) -> Result<Put, Setback> {
    let kind = desired["kind"].as_str().unwrap_or_default();
    let setback = |doing: &str| {
        let doing = format!("cannot {doing} {kind} {name}");
        move |error: kube::Error| match error {
            kube::Error::Api(status) if status.code == 409 => Setback::Retry(status.message),
            error => Setback::Failed(RunnerError::api(doing)(error)),
        }
    };
    let Some(live) = api.get_opt(name).await.map_err(setback("read"))? else {
        let object = serde_json::from_value(desired.clone()).map_err(|error| Setback::Failed(error.into()))?;
        let params = PostParams { field_manager: Some(PROXY_RUNNER.to_owned()), ..PostParams::default() };
        return api.create(&params, &object).await.map(Put::Written).map_err(setback("create"));
    };
    if let Some(owner) = foreign_owner(&live) {
        return Err(Setback::Failed(RunnerError::NotOurs { kind: kind.to_owned(), name: name.to_owned(), owner }));
    }
    if live.metadata.deletion_timestamp.is_some() {
        return Err(Setback::Retry("it is being deleted".to_owned()));
    }
    if is_overtaken(generation, stamp(&live)) {
        return Ok(Put::Overtaken(live));
    }
    let live = match as_applied(&live) {
        None => live,
        Some(entries) => {
            let patch = json!({"metadata": {"resourceVersion": live.resource_version(), "managedFields": entries}});
            let params = PatchParams { field_manager: Some(PROXY_RUNNER.to_owned()), ..PatchParams::default() };
            api.patch(name, &params, &Patch::Merge(&patch)).await.map_err(setback("take over"))?
        }
    };
    let mut document = desired.clone();
    document["metadata"]["resourceVersion"] = json!(live.resource_version());
    if let Some(policy) = document["spec"].get_mut(UNCHANGEABLE) {
        live.data["spec"][UNCHANGEABLE].clone_into(policy);
    }
    if let Some(asked) = template_annotations(&live)[KUBECTL_RESTARTED_AT].as_str() {
        document["spec"]["template"]["metadata"]["annotations"][KUBECTL_RESTARTED_AT] = json!(asked);
    }
    let params = PatchParams::apply(PROXY_RUNNER).force();
    api.patch(name, &params, &Patch::Apply(&document)).await.map(Put::Written).map_err(setback("apply"))
}

/// The controller of an object that no proxy may write.
fn foreign_owner(live: &DynamicObject) -> Option<String> {
    let owner = live.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let is_known = (group, owner.kind.as_str()) == (GROUP, MCPServer::DEFINITION.kind)
        // The StatefulSet owns the Services.
        || (group, owner.kind.as_str()) == ("apps", "StatefulSet");
    (!is_known).then(|| format!("{} {}", owner.kind, owner.name))
}

fn template_annotations(object: &DynamicObject) -> &Value {
    &object.data["spec"]["template"]["metadata"]["annotations"]
}

/// The generation that an object was written for. A StatefulSet carries it where its pods get it from.
pub(super) fn stamp(object: &DynamicObject) -> Option<&str> {
    if object.data["spec"]["template"].is_object() {
        template_annotations(object)[MCP_SERVER_GENERATION].as_str()
    } else {
        object.annotations().get(MCP_SERVER_GENERATION).map(String::as_str)
    }
}

/// An object that a proxy has created does not count as applied, so that an apply would leave in it what it no longer
/// says. These are its entries of managedFields with that put right; `None` when there is nothing to put right.
fn as_applied(live: &DynamicObject) -> Option<Vec<ManagedFieldsEntry>> {
    let entries = live.metadata.managed_fields.as_deref().unwrap_or_default();
    taken_over(entries, PROXY_RUNNER, |entry| entry.manager.as_deref() == Some(PROXY_RUNNER))
}
