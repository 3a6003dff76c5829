//! What others write onto the operator's objects and children, and must find there again.

use anyhow::ensure;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::kinds::{child_kinds, is_ours, own_kinds};
use super::place::{Place, forgive};
use super::random::Random;

/// The name of every word, finalizer, condition and container of others.
pub(super) const FOREIGN: &str = "foreign";
/// The finalizer of others; it has to have a domain.
pub(super) const FINALIZER: &str = "example.com/foreign";

/// Something that somebody else has written onto an object.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    resource: ApiResource,
    name: String,
    uid: Option<String>,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Words,
    Finalizer,
    Condition,
    Container,
}

impl What {
    fn is_on(self, object: &Value) -> bool {
        let has =
            |list: &Value, wanted: &dyn Fn(&Value) -> bool| list.as_array().is_some_and(|all| all.iter().any(wanted));
        match self {
            Self::Words => ["labels", "annotations"].iter().all(|kind| object["metadata"][kind][FOREIGN] == "yes"),
            Self::Finalizer => has(&object["metadata"]["finalizers"], &|found| found == FINALIZER),
            Self::Condition => has(&object["status"]["conditions"], &|found| found["type"] == FOREIGN),
            Self::Container => {
                has(&object["spec"]["template"]["spec"]["containers"], &|found| found["name"] == FOREIGN)
            }
        }
    }
}

/// Writes something onto an object or a child, if there is one.
pub(super) async fn mark_something(place: &Place, random: &mut Random) -> kube::Result<Option<Mark>> {
    let own = own_kinds();
    let is_own = random.below(2) == 0;
    let children = child_kinds();
    let resource = if is_own { &own[random.below(own.len())] } else { &children[random.below(children.len())] }.clone();
    let found = place.objects(&resource).list(&ListParams::default()).await?;
    let candidates: Vec<&DynamicObject> = found.items.iter().filter(|object| is_own || is_ours(object)).collect();
    if candidates.is_empty() {
        return Ok(None);
    }
    let name = candidates[random.below(candidates.len())].name_any();
    let what = match resource.kind.as_str() {
        "Deployment" => random.pick(&[What::Words, What::Container]),
        _ if is_own => random.pick(&[What::Words, What::Finalizer, What::Condition]),
        _ => What::Words,
    };
    let written = write(place, &resource, &name, what).await?;
    Ok(written.map(|written| Mark { resource, name, uid: written.uid(), what }))
}

async fn write(place: &Place, resource: &ApiResource, name: &str, what: What) -> kube::Result<Option<DynamicObject>> {
    let api = place.objects(resource);
    let params = PatchParams { field_manager: Some("somebody-else".to_owned()), ..PatchParams::default() };
    loop {
        let Some(object) = api.get_opt(name).await? else { return Ok(None) };
        let document = json!(object);
        let version = json!({"resourceVersion": object.resource_version()});
        let written = match what {
            What::Words => {
                let words = json!({"labels": {FOREIGN: "yes"}, "annotations": {FOREIGN: "yes"}});
                api.patch(name, &params, &Patch::Merge(&json!({"metadata": words}))).await
            }
            // Of an object that is being deleted a finalizer can be taken, not added.
            What::Finalizer if object.metadata.deletion_timestamp.is_some() => return Ok(None),
            What::Finalizer => {
                let mut metadata = version;
                metadata["finalizers"] = with(&document["metadata"]["finalizers"], json!(FINALIZER));
                api.patch(name, &params, &Patch::Merge(&json!({"metadata": metadata}))).await
            }
            What::Condition => {
                let condition = json!({"type": FOREIGN, "status": "True", "reason": "Because", "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"});
                let conditions = with(&document["status"]["conditions"], condition);
                let patch = json!({"metadata": version, "status": {"conditions": conditions}});
                api.patch_status(name, &params, &Patch::Merge(&patch)).await
            }
            What::Container => {
                let containers = json!([{"name": FOREIGN, "image": "mesh"}]);
                let patch = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"uid": object.uid()},
                    "spec": {"template": {"spec": {"containers": containers}}}});
                api.patch(name, &PatchParams::apply("mesh").force(), &Patch::Apply(&patch)).await
            }
        };
        if let Some(written) = forgive(written)? {
            return Ok(Some(written));
        }
    }
}

/// A list with one more item, unless it has it.
fn with(list: &Value, item: Value) -> Value {
    let mut items = list.as_array().cloned().unwrap_or_default();
    if !items.contains(&item) {
        items.push(item);
    }
    Value::Array(items)
}

/// Fails when an object still exists and has lost what somebody else wrote onto it.
pub(super) async fn check(place: &Place, marks: &[Mark]) -> anyhow::Result<()> {
    for mark in marks {
        let found = place.objects(&mark.resource).get_opt(&mark.name).await?;
        let Some(found) = found.filter(|found| found.uid() == mark.uid) else { continue };
        let (kind, name, what) = (&mark.resource.kind, &mark.name, mark.what);
        // Whoever put a finalizer there takes it away in the end.
        let is_let_go = matches!(what, What::Finalizer) && found.metadata.deletion_timestamp.is_some();
        let is_kept = is_let_go || what.is_on(&json!(found));
        ensure!(is_kept, "{kind} {name} has lost {what:?} of others: {found:#?}");
    }
    Ok(())
}

/// Takes the finalizers of others off objects that are to go.
pub(super) async fn let_go(place: &Place) -> kube::Result<()> {
    for resource in own_kinds() {
        let api = place.objects(&resource);
        for listed in api.list(&ListParams::default()).await? {
            loop {
                let Some(object) = api.get_opt(&listed.name_any()).await? else { break };
                if object.metadata.deletion_timestamp.is_none() || !object.finalizers().contains(&FINALIZER.to_owned())
                {
                    break;
                }
                let others: Vec<&String> = object.finalizers().iter().filter(|found| *found != FINALIZER).collect();
                let metadata = json!({"resourceVersion": object.resource_version(), "finalizers": others});
                let patch = json!({"metadata": metadata});
                forgive(api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await)?;
            }
        }
    }
    Ok(())
}
