//! A container over all its runs: pulled, created, started, and started again.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container as Wish;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::backoff::Backoff;
use super::context::Context;
use super::prepare::prepare;
use super::run::{RunError, image_changed, run};
use super::state::End;
use crate::image::{ImageError, Program};

/// How soon another attempt is made at what only a change elsewhere can mend, such as a missing ConfigMap.
const RETRY: Duration = Duration::from_secs(2);
/// Installers print a lot; an event now and then shows that they are at it.
const PROGRESS: Duration = Duration::from_secs(2);

/// How a container takes part in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It comes before the others and must succeed.
    Init,
    /// It is always kept running.
    Sidecar,
    Main,
    /// Somebody has added it to look around. It runs once.
    Ephemeral,
}

/// Drives a container until it is not to be started again: because of how it ended, or because the pod stops.
pub(super) async fn drive(context: &Context, name: &str, role: Role) {
    let mut restarts = Backoff::new(context.node.restarts);
    let mut pulls = Backoff::new(context.node.restarts);
    let ended = context.board.borrow().container(name).and_then(|state| state.ended().map(|end| end.code));
    // Init containers run again in a new network and with new volumes; others only as their policy says.
    if let Some(code) = ended
        && role != Role::Init
        && !is_restarted(context, role, code)
    {
        return;
    }
    loop {
        let Some(wish) = context.wish(name) else { return };
        let attempt = async {
            let program = program(context, &wish, &mut pulls).await?;
            match prepare(context, &wish, &program).await {
                Ok(prepared) => Some(prepared),
                Err(error) => {
                    let message = error.to_string();
                    context.update(name, |state| state.wait("CreateContainerConfigError", Some(message.clone())));
                    context.warn("Failed", format!("Error: {message}"));
                    sleep(RETRY).await;
                    None
                }
            }
        };
        let prepared = tokio::select! {
            prepared = attempt => prepared,
            _ = context.stopped(role) => return,
        };
        let Some(prepared) = prepared else { continue };
        let begun = Instant::now();
        let end = match run(context, &wish, role, &prepared).await {
            Ok(outcome) => {
                context.update(name, |state| state.end(outcome.end.clone()));
                if outcome.stopped {
                    return;
                }
                outcome.end
            }
            Err(error) => not_started(context, name, &error),
        };
        if !is_restarted(context, role, end.code) {
            return;
        }
        let replaced = context.wish(name).is_some_and(|now| now.image != wish.image);
        if !replaced && !pause(context, &wish, role, restarts.after_run(begun.elapsed())).await {
            return;
        }
    }
}

/// The program of the image, pulled if need be. `None` after an attempt that failed and its pause.
async fn program(context: &Context, wish: &Wish, pulls: &mut Backoff) -> Option<Program> {
    let name = wish.name.as_str();
    let image = wish.image.as_deref().unwrap_or_default();
    let failure = match context.node.images.present(image) {
        Ok(Some(program)) => {
            context.note("Pulled", format!("Container image {image:?} already present on machine"));
            pulls.reset();
            return Some(program);
        }
        absent @ (Ok(None) | Err(ImageError::Unknown)) if wish.image_pull_policy.as_deref() == Some("Never") => {
            let mut message = format!("Container image {image:?} is not present with pull policy of Never");
            if let Err(cause) = absent {
                message = format!("{message}: {cause}");
            }
            context.update(name, |state| state.wait("ErrImageNeverPull", Some(message.clone())));
            context.warn("ErrImageNeverPull", message);
            sleep(RETRY).await;
            return None;
        }
        Ok(None) => {
            context.note("Pulling", format!("Pulling image {image:?}"));
            let begun = Instant::now();
            let told = Mutex::new(begun);
            let progress = |line: &str| {
                tracing::debug!(image, "{line}");
                let mut told = told.lock();
                if told.elapsed() >= PROGRESS {
                    *told = Instant::now();
                    context.note("Pulling", format!("Pulling image {image:?}: {line}"));
                }
            };
            match context.node.images.pull(image, progress).await {
                Ok(program) => {
                    let took = begun.elapsed().as_millis();
                    context.note("Pulled", format!("Successfully pulled image {image:?} in {took}ms"));
                    pulls.reset();
                    return Some(program);
                }
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    refuse(context, wish, image, &failure, pulls).await;
    None
}

async fn refuse(context: &Context, wish: &Wish, image: &str, failure: &ImageError, pulls: &mut Backoff) {
    let name = wish.name.as_str();
    let bad_name = matches!(failure, ImageError::BadPackage(_) | ImageError::BadName(_));
    let reason = if bad_name { "InvalidImageName" } else { "ErrImagePull" };
    context.update(name, |state| state.wait(reason, Some(failure.to_string())));
    if bad_name {
        context.warn("InspectFailed", format!("Failed to apply default image tag {image:?}: {failure}"));
    } else {
        context.warn("Failed", format!("Failed to pull image {image:?}: {failure}"));
    }
    context.warn("Failed", format!("Error: {reason}"));
    let delay = pulls.after_failure();
    if reason == "ErrImagePull" {
        // The first reason is worth being seen before it becomes a back-off.
        sleep(Duration::from_secs(1).min(delay)).await;
        let message = format!("Back-off pulling image {image:?}: {reason}: {failure}");
        context.update(name, |state| state.wait("ImagePullBackOff", Some(message)));
        context.note("BackOff", format!("Back-off pulling image {image:?}"));
    }
    tokio::select! {
        () = sleep(delay) => {}
        () = image_changed(context, wish) => pulls.reset(),
    }
}

fn not_started(context: &Context, name: &str, error: &RunError) -> End {
    let message = error.to_string();
    let now = Timestamp::now();
    let end = End {
        id: String::new(),
        code: 128,
        signal: None,
        reason: "StartError".to_owned(),
        message: Some(message.clone()),
        started: None,
        finished: now,
    };
    context.update(name, |state| {
        if state.last.is_some() || state.ended().is_some() {
            state.restarts = state.restarts.saturating_add(1);
        }
        state.end(end.clone());
    });
    context.warn("Failed", format!("Error: {message}"));
    end
}

fn is_restarted(context: &Context, role: Role, code: i32) -> bool {
    let pod = context.pod();
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
    match (role, policy) {
        (Role::Sidecar, _) | (Role::Main, "Always") => true,
        (Role::Ephemeral, _) | (_, "Never") => false,
        (Role::Init | Role::Main, _) => code != 0,
    }
}

/// Waits before the next run; false when there will be none because the pod stops.
async fn pause(context: &Context, wish: &Wish, role: Role, delay: Duration) -> bool {
    if delay > Duration::ZERO {
        let name = wish.name.as_str();
        let title = context.title();
        let seconds = delay.as_secs();
        let message = format!("back-off {seconds}s restarting failed container={name} pod={title}");
        context.update(name, |state| state.wait("CrashLoopBackOff", Some(message)));
        context.warn("BackOff", format!("Back-off restarting failed container {name} in pod {title}"));
    }
    tokio::select! {
        () = sleep(delay) => true,
        () = image_changed(context, wish) => true,
        _ = context.stopped(role) => false,
    }
}
