//! POST to `pods/NAME/eviction`: a deletion that a disruption budget can forbid.

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::exchange::Exchange;
use super::super::{metadata, read};
use super::binding::success;
use super::delete::delete_one;
use super::delete_options::DeleteOptions;
use super::draft::{self, Draft};
use super::expected::Expected;
use super::{Attempts, body, conditions, now, own_status};
use crate::selector::LabelSelector;
use crate::status::{ApiError, Cause, Reason, ResourceName};
use crate::store::{Record, Selection};

/// Where the store keeps budgets.
const BUDGETS: &str = "policy/poddisruptionbudgets";
/// Evictions that nobody has taken note of yet. With more than this something must be wrong.
const MAX_DISRUPTED: usize = 2000;
const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub async fn evict(state: &State, exchange: &Exchange) -> Result<Response<Body>, ApiError> {
    let mut eviction = body::read(exchange, &Expected::eviction())?.value;
    body::check_namespace(exchange, &mut eviction)?;
    if metadata::name(&eviction) != exchange.name() {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = DeleteOptions::read(&eviction["deleteOptions"])?;
    options.dry_run |= exchange.options.dry_run;
    let mut is_granted = false;
    let attempts = Attempts::start();
    loop {
        let record = read::find(state, exchange)?;
        let pod = read::load(exchange, &record)?;
        options.check(exchange, &pod)?;
        if !is_granted && !is_beyond_budgets(&pod) {
            is_granted = ask_budget(state, exchange, &pod, options.dry_run).await?;
        }
        match remove(state, exchange, &record, pod, &options).await {
            Err(error) if !options.is_particular() && attempts.go_on(&error) => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(exchange.reply_value(StatusCode::CREATED, &success())),
        }
    }
}

/// Deletes the pod, which tells until then why it goes.
async fn remove(
    state: &State,
    exchange: &Exchange,
    record: &Arc<Record>,
    mut pod: Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    if options.dry_run {
        return delete_one(state, exchange, record, options).await.map(drop);
    }
    conditions::hold(&mut pod, "DisruptionTarget", Some(("EvictionByEvictionAPI", "Eviction API: evicting")));
    metadata::set(&mut pod, "resourceVersion", None);
    draft::store(state, exchange, Draft::of(pod, record.clone())).await?;
    let marked = read::find(state, exchange)?;
    delete_one(state, exchange, &marked, &options.clone().checked()).await.map(drop)
}

/// A pod that does not run yet, or no longer, disrupts nothing when it goes.
fn is_beyond_budgets(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Pending" | "Succeeded"))
        || metadata::is_being_deleted(pod)
}

/// Asks the budget of a pod, if it has one. Whether the budget has been charged; a pod that counts for nothing may go
/// without that, for as long as it is so.
async fn ask_budget(state: &State, exchange: &Exchange, pod: &Value, dry_run: bool) -> Result<bool, ApiError> {
    let attempts = Attempts::start();
    loop {
        let (record, budget) = match budgets_of(state, exchange, pod).as_slice() {
            [] => return Ok(false),
            [only] => only.clone(),
            _ => {
                let message =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(ApiError::new(Reason::Unknown, message));
            }
        };
        if !is_ready(pod) && lets_unready_go(&budget) {
            return Ok(false);
        }
        check_allows(&budget)?;
        if dry_run {
            return Ok(true);
        }
        let charged = own_status(state, &record, |budget| {
            let status = &mut budget["status"];
            status["disruptionsAllowed"] = json!(status["disruptionsAllowed"].as_i64().unwrap_or_default() - 1);
            status["disruptedPods"][exchange.name()] = json!(now());
        });
        match charged.await {
            Err(error) if attempts.go_on(&error) => {}
            Err(error) if error.is_about_a_change() => {
                let message = "Timeout: couldn't update PodDisruptionBudget due to conflicts";
                return Err(ApiError::new(Reason::Timeout, message));
            }
            charged => return charged.map(|()| true),
        }
    }
}

fn budgets_of(state: &State, exchange: &Exchange, pod: &Value) -> Vec<(Arc<Record>, Value)> {
    let selection = Selection { namespace: Some(exchange.namespace()), ..Selection::all(BUDGETS) };
    let read = |record: Arc<Record>| {
        let budget: Value = serde_json::from_slice(&record.object.bytes()).ok()?;
        // A selector that cannot be read selects nothing.
        let selector = LabelSelector::from_object(&budget["spec"]["selector"]).ok()?;
        selector.matches_object(pod).then_some((record, budget))
    };
    state.store.list(&selection).records.into_iter().filter_map(read).collect()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|list| list.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}

/// Whether a pod that is not ready may go without being counted: always, or while there are enough others.
fn lets_unready_go(budget: &Value) -> bool {
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || (healthy >= desired && desired > 0)
}

fn count(budget: &Value, member: &str) -> i64 {
    budget["status"][member].as_i64().unwrap_or_default()
}

fn check_allows(budget: &Value) -> Result<(), ApiError> {
    let name = metadata::name(budget);
    let refuse = |why| Err(ApiError::forbidden(&ResourceName::new("policy", "poddisruptionbudget"), name, why));
    if count(budget, "observedGeneration") < metadata::generation(budget) {
        let mut error = violated(format!("The disruption budget {name} is still being processed by the server."));
        error.retry_after_seconds = Some(10);
        return Err(error);
    }
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return refuse("pdb disruptions allowed is negative");
    }
    if budget["status"]["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MAX_DISRUPTED) {
        return refuse("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 { Err(violated(why_none(budget, name))) } else { Ok(()) }
}

fn violated(why: String) -> ApiError {
    let mut error = ApiError::new(Reason::TooManyRequests, VIOLATED);
    error.causes.push(Cause { reason: "DisruptionBudget".into(), message: why, field: None });
    error
}

fn why_none(budget: &Value, name: &str) -> String {
    let conditions = budget["status"]["conditions"].as_array().into_iter().flatten();
    let told = conditions
        .filter(|condition| condition["type"] == "DisruptionAllowed" && condition["status"] == "False")
        .find_map(|condition| Some((condition["reason"].as_str()?, condition["message"].as_str()?)))
        .filter(|(_, message)| !message.is_empty());
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    match told {
        Some(("SyncFailed", message)) => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
            )
        }
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => {
            format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}
