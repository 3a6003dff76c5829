//! How clients and servers of different eras are brought together, as flags and the environment say.

use clap::ValueEnum;
use skep_api::duration;
use skep_api::names::env::runner;
use skep_proxy::transparent::Dialect;
use skep_proxy::{BackendEra, BackendSessions, EraSettings, ParkedCalls};

use super::Variables;
use crate::cli::{EraArgs, EraChoice, ParkedCallsChoice, SessionsChoice};
use crate::hint::Hinted;

/// What flags say, or else the environment. A value there that makes no sense is an error: whoever has set it would believe
/// that it counts.
pub(crate) fn read(given: &EraArgs, variables: Variables<'_>) -> Result<EraSettings, Hinted> {
    let usual = EraSettings::default();
    let EraArgs { backend_era, parked_calls, backend_sessions, backend_session_idle } = *given;
    let (era, calls) = (choice(runner::BACKEND_ERA, variables)?, choice(runner::PARKED_CALLS, variables)?);
    let (sessions, idle) = (choice(runner::BACKEND_SESSIONS, variables)?, idle(variables)?);
    Ok(EraSettings {
        era: match backend_era.or(era) {
            None | Some(EraChoice::Auto) => BackendEra::Auto,
            Some(EraChoice::Legacy) => BackendEra::Legacy,
            Some(EraChoice::Modern) => BackendEra::Modern,
        },
        parked_calls: match parked_calls.or(calls) {
            None | Some(ParkedCallsChoice::Auto) => ParkedCalls::Auto,
            Some(ParkedCallsChoice::On) => ParkedCalls::On,
            Some(ParkedCallsChoice::Off) => ParkedCalls::Off,
        },
        sessions: match backend_sessions.or(sessions) {
            None | Some(SessionsChoice::PerPrincipal) => BackendSessions::PerPrincipal,
            Some(SessionsChoice::PerRequest) => BackendSessions::PerRequest,
            Some(SessionsChoice::Shared) => BackendSessions::Shared,
        },
        session_idle: backend_session_idle.or(idle).unwrap_or(usual.session_idle),
    })
}

/// Refuses an era that a server which speaks so cannot be of.
pub(super) fn fit(settings: &EraSettings, dialect: Dialect) -> Result<(), Hinted> {
    if dialect == Dialect::Sse && settings.era == BackendEra::Modern {
        return Err(Hinted::new("a server that speaks HTTP+SSE cannot be of the era modern")
            .hint(format!("leave --backend-era and {} out; its era is known by its transport", runner::BACKEND_ERA)));
    }
    Ok(())
}

/// Tells of what somebody has chosen that has no effect before a server on standard input and output.
pub(super) fn warn_without_effect(settings: &EraSettings) {
    for ignored in without_effect(settings) {
        tracing::warn!(ignored, "it is for servers that speak HTTP");
    }
}

/// What such a server makes no use of, where it is not as usual anyway: it has one session for all clients without any, and
/// nobody can be asked there.
fn without_effect(settings: &EraSettings) -> impl Iterator<Item = &'static str> {
    let usual = EraSettings::default();
    let EraSettings { era: _, parked_calls, sessions, session_idle } = settings;
    let chosen = [
        (runner::PARKED_CALLS, *parked_calls != usual.parked_calls),
        (runner::BACKEND_SESSIONS, *sessions != usual.sessions),
        (runner::BACKEND_SESSION_IDLE, *session_idle != usual.session_idle),
    ];
    chosen.into_iter().filter(|(_, is_chosen)| *is_chosen).map(|(name, _)| name)
}

/// A variable that has one of some values.
fn choice<T: ValueEnum>(name: &str, variables: Variables<'_>) -> Result<Option<T>, Hinted> {
    let Some(text) = told(name, variables) else { return Ok(None) };
    T::from_str(&text, false).map(Some).map_err(|_| {
        let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let values: Vec<_> = values.map(|value| value.get_name().to_owned()).collect();
        Hinted::new(format!("{name}: {text:?} is none of {}", values.join(", ")))
            .hint("set it to one of these, or leave it out")
    })
}

fn idle(variables: Variables<'_>) -> Result<Option<std::time::Duration>, Hinted> {
    let name = runner::BACKEND_SESSION_IDLE;
    let Some(text) = told(name, variables) else { return Ok(None) };
    let time = duration::parse(&text).ok().filter(|time| !time.is_zero());
    time.map(Some).ok_or_else(|| {
        Hinted::new(format!("{name}: {text:?} is no duration above zero"))
            .hint("write it like 90s or 5m, or leave it out")
    })
}

fn told(name: &str, variables: Variables<'_>) -> Option<String> {
    variables(name).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn with(given: &EraArgs, variables: &[(&str, &str)]) -> Result<EraSettings, String> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        read(given, &find).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_count_for_more_than_the_environment() {
        let none = EraArgs::default();
        let usual = with(&none, &[("SKEP_BACKEND_ERA", "")]).unwrap();
        assert_eq!((usual.era, usual.parked_calls), (BackendEra::Auto, ParkedCalls::Auto));
        assert_eq!((usual.sessions, usual.session_idle), (BackendSessions::PerPrincipal, Duration::from_mins(5)));
        let variables = [
            ("SKEP_BACKEND_ERA", "legacy"),
            ("SKEP_PARKED_CALLS", "off"),
            ("SKEP_BACKEND_SESSIONS", "shared"),
            ("SKEP_BACKEND_SESSION_IDLE", "90s"),
        ];
        let told = with(&none, &variables).unwrap();
        assert_eq!((told.era, told.parked_calls), (BackendEra::Legacy, ParkedCalls::Off));
        assert_eq!((told.sessions, told.session_idle), (BackendSessions::Shared, Duration::from_secs(90)));
        let flags = EraArgs {
            backend_era: Some(EraChoice::Modern),
            parked_calls: Some(ParkedCallsChoice::On),
            backend_sessions: Some(SessionsChoice::PerRequest),
            backend_session_idle: Some(Duration::from_secs(7)),
        };
        let told = with(&flags, &variables).unwrap();
        assert_eq!((told.era, told.parked_calls), (BackendEra::Modern, ParkedCalls::On));
        assert_eq!((told.sessions, told.session_idle), (BackendSessions::PerRequest, Duration::from_secs(7)));
    }

    #[test]
    fn what_has_no_effect_before_a_process_is_named() {
        let without_effect = |variables: &[(&str, &str)]| -> Vec<_> {
            without_effect(&with(&EraArgs::default(), variables).unwrap()).collect()
        };
        assert_eq!(without_effect(&[("SKEP_BACKEND_ERA", "legacy"), ("SKEP_PARKED_CALLS", "auto")]), [""; 0]);
        let chosen =
            [("SKEP_PARKED_CALLS", "off"), ("SKEP_BACKEND_SESSIONS", "shared"), ("SKEP_BACKEND_SESSION_IDLE", "90s")];
        assert_eq!(without_effect(&chosen), chosen.map(|(name, _)| name));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name_value_and_what_there_is() {
        for (name, value, allowed) in [
            ("SKEP_BACKEND_ERA", "newest", "auto, legacy, modern"),
            ("SKEP_PARKED_CALLS", "true", "auto, on, off"),
            ("SKEP_BACKEND_SESSIONS", "PER-REQUEST", "per-principal, per-request, shared"),
            ("SKEP_BACKEND_SESSION_IDLE", "0s", "no duration above zero"),
            ("SKEP_BACKEND_SESSION_IDLE", "soon", "no duration above zero"),
        ] {
            let said = with(&EraArgs::default(), &[(name, value)]).unwrap_err();
            assert!(said.contains(name) && said.contains(value) && said.contains(allowed), "{said}");
        }
        let modern = EraSettings { era: BackendEra::Modern, ..EraSettings::default() };
        assert!(fit(&modern, Dialect::Sse).is_err() && fit(&modern, Dialect::Streamable).is_ok());
        assert!(fit(&EraSettings::default(), Dialect::Sse).is_ok());
    }
}
