//! One attempt to bring everything that belongs to a workload to its desired state.

use std::sync::Arc;
use std::time::Duration;

use skep_api::conditions::{Statement, reasons, types};
use skep_control::Next;

use super::gather::{Lacking, gather};
use super::hashes::Hashes;
use super::names::{check_names, check_volumes};
use super::pod::parse_pod_template;
use super::report::Report;
use super::resolve::{Unusable, resolve};
use super::run_config::{AuthServerReference, BuildError};
use super::write::{Cause, Unfinished, write};
use super::{Inputs, Proxied, Resolved, Target, overrides};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::object_names;
use crate::settings::ProxySettings;
use crate::write::ApplyError;

/// How soon something that is not watched, or that a watch may have missed, is looked for again.
pub const RECHECK: Duration = Duration::from_secs(30);

/// Why an attempt ended before everything was in place.
#[derive(Debug)]
pub enum Stop {
    /// The status tells it; what is to be done about it comes along.
    Told(Incomplete, Result<Next, Failure>),
    /// Nothing is wrong with the object: the attempt is repeated. If that does not help, there is this to tell.
    Interrupted(Incomplete, Failure),
    /// Something is about to change, and wakes the controller when it has; should that be missed, [`RECHECK`] does. There
    /// is nothing to tell.
    Wait,
}

/// Why a workload is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// Whether there is nothing wrong, only not yet right.
    pub is_pending: bool,
    pub reason: &'static str,
    /// What the condition `Ready` says.
    pub text: String,
    /// What `status.message` says; unset leaves it as it was.
    pub message: Option<String>,
}

impl Stop {
    /// A person has to correct something. `next` says whether that is noticed or has to be looked for.
    pub fn told(reason: &'static str, text: String, next: Next) -> Self {
        Self::Told(Incomplete::failed(reason, text), Ok(next))
    }

    /// Something went wrong that may not the next time.
    pub fn interrupted(text: String, failure: Failure) -> Self {
        Self::Interrupted(Incomplete::failed(reasons::NOT_READY, text), failure)
    }

    /// As [`Stop::told`], about something that is not watched.
    pub fn told_now_and_then(text: String) -> Self {
        Self::told(reasons::NOT_READY, text, Next::After(RECHECK))
    }
}

impl Incomplete {
    /// Something is wrong.
    pub fn failed(reason: &'static str, text: String) -> Self {
        Self { is_pending: false, reason, message: Some(text.clone()), text }
    }
}

/// Makes the objects of a workload what they should be.
pub async fn build<O: Proxied>(
    cluster: &Arc<Cluster>,
    settings: &ProxySettings,
    owner: &O,
    hashes: &mut Hashes,
    report: &mut Report,
) -> Result<(), Stop> {
    let (common, target) = (owner.common(), owner.target());
    let nothing = Resolved::default();
    let inputs = Inputs { common, target, resolved: &nothing, settings };
    check_names(&inputs).map_err(|text| Stop::told(reasons::NAME_RESERVED, text, Next::Rest))?;
    let invalid = |text| Stop::told(reasons::NOT_READY, text, Next::Rest);
    object_names::check(owner.spec()).map_err(|text| invalid(format!("spec.{text}")))?;
    overrides::check(&inputs).map_err(invalid)?;
    pod_template(&inputs, report)?;
    let mut resolved = resolve(cluster, common, target, hashes, report).await.map_err(unusable)?;
    let kind = O::DEFINITION.kind;
    let gathered = gather(&cluster.client, &inputs, &mut resolved, report).await;
    gathered.map_err(|lacking| {
        let text = format!("Failed to build configuration: failed to create RunConfig from {kind}: {lacking}");
        match lacking {
            Lacking::Failure(failure) => Stop::interrupted(text, failure),
            Lacking::Content(_) => Stop::told_now_and_then(text),
        }
    })?;
    let inputs = Inputs { resolved: &resolved, ..inputs };
    check_volumes(&inputs).map_err(|text| Stop::told(reasons::NOT_READY, text, Next::Rest))?;
    let written = write(cluster, owner, &inputs).await;
    written.map_err(|unfinished| unwritten(unfinished, report))
}

/// Whether the pod template can be read.
fn pod_template(inputs: &Inputs<'_>, report: &mut Report) -> Result<(), Stop> {
    let (template, reason) = match inputs.target {
        Target::Server(spec) => (&spec.pod_template_spec, reasons::NOT_READY),
        Target::Remote(spec) => (&spec.pod_template_spec, reasons::DEPLOYMENT_NOT_READY),
    };
    if template.is_none() {
        return Ok(());
    }
    let type_ = types::POD_TEMPLATE_VALID;
    match parse_pod_template(inputs) {
        Ok(_) => {
            report.say(Statement::holds(type_, reasons::VALID_POD_TEMPLATE_SPEC, "PodTemplateSpec is valid"));
            Ok(())
        }
        Err(cause) => {
            let text = format!("Failed to parse PodTemplateSpec: {cause}. Deployment blocked until fixed.");
            report.say(Statement::fails(type_, reasons::INVALID_POD_TEMPLATE_SPEC, text));
            Err(Stop::told(reason, format!("Invalid PodTemplateSpec: {cause}"), Next::Rest))
        }
    }
}

fn unusable(unusable: Unusable) -> Stop {
    let (text, is_pending) = match unusable {
        Unusable::Wrong(text) => (text, false),
        Unusable::Early(text) => (text, true),
        Unusable::Changing => return Stop::Wait,
        Unusable::Failure(failure) => return Stop::interrupted(failure.to_string(), failure),
    };
    let incomplete = Incomplete { is_pending, reason: reasons::NOT_READY, text, message: None };
    Stop::Told(incomplete, Ok(Next::Rest))
}

fn unwritten(unfinished: Unfinished, report: &mut Report) -> Stop {
    let text = unfinished.to_string();
    match unfinished.cause {
        Cause::Apply(ApplyError::Failure(failure)) | Cause::Read(_, failure) if !failure.is_final() => {
            Stop::interrupted(text, failure)
        }
        Cause::Apply(ApplyError::Failure(failure)) | Cause::Read(_, failure) => {
            Stop::Told(Incomplete::failed(reasons::NOT_READY, text), Err(failure))
        }
        Cause::Apply(ApplyError::NotOurs { .. }) | Cause::Secret(_) => Stop::told_now_and_then(text),
        Cause::Build(BuildError::EmbeddedAuthServer { reference, violation }) => {
            let (type_, reason) = match reference {
                AuthServerReference::AuthServerRef => {
                    (types::AUTH_SERVER_REF_VALIDATED, reasons::AUTH_SERVER_REF_INVALID_CONFIG)
                }
                AuthServerReference::ExternalAuthConfigRef => {
                    (types::EXTERNAL_AUTH_CONFIG_VALIDATED, reasons::INVALID_CONFIG)
                }
            };
            report.say(Statement::fails(type_, reason, violation));
            Stop::told(reasons::NOT_READY, text, Next::Rest)
        }
        Cause::Build(_) | Cause::Pod(_) => Stop::told(reasons::NOT_READY, text, Next::Rest),
    }
}
