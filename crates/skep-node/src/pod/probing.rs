//! The probes of a running container, asked again and again.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use tokio::time::{Instant, sleep};

use super::context::{Context, Live};
use super::hook;
use super::probe::{self, Plan, Question, Verdict};

/// The first answers are asked for more often than the period says: a server is usually up long before.
const EAGER: Duration = Duration::from_millis(50);

/// Why a container has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdicts {
    /// `liveness` or `startup`.
    pub(super) probe: &'static str,
    /// The time it gets, where the probe says so.
    pub(super) grace: Option<i64>,
}

#[derive(Clone, Copy)]
enum Kind {
    Startup,
    Readiness,
    Liveness,
}

impl Kind {
    fn title(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }
}

/// Keeps `started` and `ready` of the container up to date, and returns when it has to go.
pub(super) async fn watch(context: &Context, container: &Container, live: &Live) -> Verdicts {
    let name = container.name.as_str();
    if let Some(plan) = plan(context, container, container.startup_probe.as_ref()) {
        let up = repeat(context, container, live, Kind::Startup, &plan, |good| good).await;
        if !up {
            return Verdicts { probe: "startup", grace: plan.grace };
        }
    }
    let readiness = plan(context, container, container.readiness_probe.as_ref());
    context.update(name, |state| {
        state.started = true;
        state.ready = readiness.is_none();
    });
    let ready = async {
        if let Some(plan) = &readiness {
            repeat(context, container, live, Kind::Readiness, plan, |good| {
                context.update(name, |state| state.ready = good);
                false
            })
            .await;
        }
        std::future::pending::<Verdicts>().await
    };
    let alive = async {
        if let Some(plan) = plan(context, container, container.liveness_probe.as_ref()) {
            repeat(context, container, live, Kind::Liveness, &plan, |good| !good).await;
            return Verdicts { probe: "liveness", grace: plan.grace };
        }
        std::future::pending().await
    };
    tokio::select! {
        verdict = ready => verdict,
        verdict = alive => verdict,
    }
}

fn plan(context: &Context, container: &Container, probe: Option<&Probe>) -> Option<Plan> {
    let address = context.place().pod_ip?;
    match Plan::new(probe?, container, address) {
        Ok(plan) => Some(plan),
        Err(error) => {
            // The API server lets such ports pass; the probe can never succeed.
            context.warn("Unhealthy", error.to_string());
            Some(Plan { question: Question::Unsupported("the port of the probe does not exist"), ..never() })
        }
    }
}

fn never() -> Plan {
    let second = Duration::from_secs(1);
    Plan {
        question: Question::Unsupported(""),
        initial_delay: Duration::ZERO,
        period: second * 10,
        timeout: second,
        successes: 1,
        failures: 3,
        grace: None,
    }
}

/// Asks until `enough` says so about a verdict, and returns that verdict; a failed startup is always enough.
async fn repeat(
    context: &Context,
    container: &Container,
    live: &Live,
    kind: Kind,
    plan: &Plan,
    mut enough: impl FnMut(bool) -> bool,
) -> bool {
    sleep(plan.initial_delay).await;
    let mut verdict = Verdict::new(matches!(kind, Kind::Liveness));
    let mut eager = if matches!(kind, Kind::Liveness) { plan.period } else { EAGER };
    let mut due = Instant::now();
    loop {
        let answer = ask(live, plan).await;
        let good = answer.is_ok();
        let counts = good || Instant::now() >= due;
        if counts {
            due = Instant::now() + plan.period;
            if let Err(reason) = answer {
                let told = format!("{} probe failed: {reason}", kind.title());
                context.warn("Unhealthy", told);
            }
            if let Some(decided) = verdict.take(plan, good) {
                let given_up = matches!(kind, Kind::Startup) && !decided;
                if enough(decided) || given_up {
                    return decided;
                }
            }
        }
        if good {
            eager = plan.period;
        }
        tracing::trace!(container = container.name, good, "probed");
        sleep(eager.min(plan.period)).await;
        eager = eager.saturating_mul(2);
    }
}

async fn ask(live: &Live, plan: &Plan) -> Result<(), String> {
    match &plan.question {
        Question::Exec(command) => {
            let answer = tokio::time::timeout(plan.timeout, hook::exec(live, command.clone())).await;
            answer.unwrap_or_else(|_| Err(format!("command timed out after {} s", plan.timeout.as_secs())))
        }
        question => probe::ask(question, plan.timeout).await,
    }
}
