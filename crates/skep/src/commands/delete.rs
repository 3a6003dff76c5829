//! `skep delete`.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::api::{DeleteParams, DynamicObject};
use kube::{Api, ResourceExt as _};

use crate::cli::DeleteArgs;
use crate::connection::{connect, refusal};
use crate::data_folder::DataFolder;
use crate::hint::{Hinted, report};
use crate::local::{self, Manifest};
use crate::objects::{Kinds, Place, title};
use crate::output;

const PAUSE: Duration = Duration::from_millis(50);
/// When somebody who waits wants to know what for.
const SILENCE: Duration = Duration::from_secs(1);
/// How long objects get to be gone.
const LIMIT: Duration = Duration::from_mins(2);

pub(super) async fn run(args: DeleteArgs) -> anyhow::Result<()> {
    let manifests = local::read(&args.filename)?;
    let client = connect(&DataFolder::try_from(args.data)?).await?;
    let namespace = &args.namespace.namespace;
    let mut objects: Vec<(String, String, Api<DynamicObject>)> = Vec::new();
    if let Some(kind) = &args.kind {
        let kinds = Kinds::discover(&client).await?;
        let kind = kinds.find(kind)?;
        let of = |name: &String| (title(&kind.resource, name), name.clone(), kind.api(&client, namespace));
        objects.extend(args.names.iter().map(of));
    }
    let mut failures = Vec::new();
    // In the order opposite to that of making them.
    for Manifest { origin, object } in manifests.iter().rev() {
        let place = Place::find(&client, object, namespace).await;
        match place.with_context(|| format!("cannot delete what {origin} names")) {
            Ok(place) => objects.push((place.title(), place.name, place.api)),
            Err(error) => failures.push(error),
        }
    }
    let mut leaving = Vec::new();
    for (title, name, api) in objects {
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(answer) => {
                output::print(&format!("{title} deleted\n"))?;
                leaving.extend(answer.left().map(|object| (title, object.uid(), name, api)));
            }
            Err(kube::Error::Api(status)) if status.code == 404 && args.ignore_not_found => {}
            // The others are to go all the same.
            Err(error) => failures.push(refusal(error)),
        }
    }
    if !args.no_wait {
        failures.extend(wait(&leaving).await.err());
    }
    let last = failures.pop();
    for failure in &failures {
        eprint!("{}", report(failure));
    }
    last.map_or(Ok(()), Err)
}

/// An object that was deleted: how it is called, who it was, and where.
type Leaving = (String, Option<String>, String, Api<DynamicObject>);

async fn wait(leaving: &[Leaving]) -> anyhow::Result<()> {
    tokio::time::timeout(LIMIT, gone(leaving)).await.unwrap_or_else(|_| {
        let titles: Vec<&str> = leaving.iter().map(|(title, ..)| title.as_str()).collect();
        let problem = format!("not all is gone after {} s, of: {}", LIMIT.as_secs(), titles.join(", "));
        Err(Hinted::new(problem).hint("skep get KIND NAME -o yaml shows the finalizers that are waited for").into())
    })
}

async fn gone(leaving: &[Leaving]) -> anyhow::Result<()> {
    for (title, uid, name, api) in leaving {
        let begun = Instant::now();
        let mut told = None;
        while let Some(found) = api.get_opt(name).await.map_err(refusal)?.filter(|found| found.uid() == *uid) {
            let reason = Some(stay(&found));
            if begun.elapsed() > SILENCE && told != reason {
                eprintln!("{title} is still there: {}", reason.as_deref().unwrap_or_default());
                told = reason;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Why an object that was deleted is still there.
fn stay(object: &DynamicObject) -> String {
    let conditions = object.data["status"]["conditions"].as_array();
    let blocked = conditions.into_iter().flatten().find(|condition| {
        condition["type"] == "DeletionBlocked" && condition["status"] == "True" && condition["message"].is_string()
    });
    match blocked.and_then(|condition| condition["message"].as_str()) {
        Some(message) => message.to_owned(),
        None => format!("it has the finalizers {}", object.finalizers().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_keeps_an_object_is_told() {
        let object = |status: serde_json::Value| {
            let metadata = json!({"name": "rules", "finalizers": ["hive/guard", "hive/keeper"]});
            let object = json!({"apiVersion": "v1", "kind": "Rules", "metadata": metadata, "status": status});
            serde_json::from_value::<DynamicObject>(object).unwrap()
        };
        let blocked = |status: &str| json!({"type": "DeletionBlocked", "status": status, "message": "echo needs it"});
        let with = |conditions| stay(&object(json!({ "conditions": conditions })));
        assert_eq!(with(json!([{"type": "Valid", "status": "True"}, blocked("True")])), "echo needs it");
        for conditions in [json!([blocked("False")]), json!([]), json!(null)] {
            assert_eq!(with(conditions), "it has the finalizers hive/guard, hive/keeper");
        }
    }
}
